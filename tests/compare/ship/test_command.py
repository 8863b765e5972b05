"""`gnomon verdict` as a person and as CI run it: exit codes, JSON, files, errors of one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from compare.cli.main import main
from compare.store import open_store
from tests.compare.ship.world import DAY, Planted, changed, plant
from tests.fixtures.stores import MigratedAt

QUIET = Planted(0, "good", "", DAY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("verdict") / "store"
    with open_store(migrated_at(folder), role="owner") as store:
        good = [changed(QUIET, offset=n, request_hash=f"{n}") for n in range(1_500)]
        plant(store, good)
        plant(
            store,
            [changed(pair, experiment="bad", is_candidate_only_fault=pair.offset % 5 == 0) for pair in good],
        )
        plant(store, [changed(pair, experiment="few") for pair in good[:200]])
        plant(store, [changed(pair, experiment="none", verdict="unscored") for pair in good[:5]])
        yield folder


def run(folder: Path, *arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["verdict", "--dir", str(folder), *arguments])
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("experiment", "code", "said"),
    [
        ("good", 0, "Ship: q4 of good"),
        ("bad", 1, "Hold: q4 of bad"),
        ("few", 3, "Need about"),
        ("none", 4, "No data: q4 of none"),
    ],
)
def test_exit_codes(
    folder: Path, capsys: pytest.CaptureFixture[str], experiment: str, code: int, said: str
) -> None:
    assert run(folder, "--experiment", experiment, "--margin", "0.5%") == code
    assert said in capsys.readouterr().out


def test_json_and_files(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, text = tmp_path / "v.html", tmp_path / "v.md"
    code = run(
        folder,
        "--experiment",
        "bad",
        "--margin",
        ".005",
        "--json",
        "--html",
        str(page),
        "--markdown",
        str(text),
    )
    read = json.loads(capsys.readouterr().out)
    assert code == read["exit_code"] == 1
    assert (read["schema"], read["decision"], read["candidate_only"]) == ("gnomon.verdict/1", "hold", 300)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert text.read_text(encoding="utf-8").startswith("# ✕ Hold: q4")


def test_one_is_kept_and_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--experiment", "few", "--history") == 0
    assert capsys.readouterr().out.startswith("no verdict is kept")
    assert run(folder, "--experiment", "few", "--margin", "0.5%", "--keep") == 3
    capsys.readouterr()
    assert run(folder, "--experiment", "few", "--history") == 0
    head, *rows = [
        line for line in capsys.readouterr().out.splitlines() if "need_more" in line or "made" in line
    ]
    assert "confidence" in head and len(rows) == 1 and "0.5 %" in rows[0] and " 200 " in f"{rows[0]} "
    assert run(folder, "--experiment", "few", "--candidate", "q4", "--history", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["decision"], row["margin"], row["pairs"], row["excess"]) == ("need_more", 0.005, 200, 0.0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--experiment", "nobody", "--margin", "1%"), "no pairs of experiment 'nobody'"),
        (("--experiment", "good", "--margin", "5"), "'5' is no share: write 0.5% or 0.005"),
        (("--experiment", "good", "--margin", "100%"), "margin 1 is not between 0 and 1"),
        (("--experiment", "good", "--margin", "1%", "--html", "no/such/folder/x.html"), "cannot be written"),
        (("--experiment", "good"), "Missing option '--margin'"),
        (
            ("--experiment", "good", "--margin", "1%", "--keep", "--since", "2d"),
            "a kept verdict is of all pairs",
        ),
        (
            ("--experiment", "good", "--keep", "--history"),
            "--history prints what was kept: it takes no --keep",
        ),
        (("--experiment", "good", "--history", "--since", "2d"), "it takes no --since"),
    ],
)
def test_errors_end_with_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert run(folder, *arguments) == 2
    assert said in capsys.readouterr().err
