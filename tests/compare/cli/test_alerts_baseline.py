"""`gnomon alerts baseline`: list, show, set and reset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from compare.alerts.runner import AlertRunner
from compare.cli.main import cli
from compare.store.client import Store, open_store
from ingest.errors import FatalError
from ingest.settings import StoreSettings
from ingest.settings_alerts import AlertSettings
from tests.compare.alerts.conftest import START, Writer
from tests.fixtures.stores import MigratedAt

PAIRS = 2_300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Path:
    made = tmp_path_factory.mktemp("baseline-cli")
    migrated_at(made)
    return made


@pytest.fixture(scope="module")
def store(folder: Path) -> Iterator[Store]:
    with open_store(StoreSettings(url=f"chdb://{folder}"), role="owner") as opened:
        yield opened


@pytest.fixture(scope="module")
def writer(store: Store) -> Writer:
    one = Writer(store)
    for offset in range(PAIRS):
        one.pair(offset, cosine_similarity=0.9 + offset % 3 / 100)
    one.settled(0, PAIRS)
    AlertRunner(store, AlertSettings(), one.experiment, ["q4"]).run_once()
    return one


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["alerts", "baseline", *arguments, "--dir", str(folder)])


def test_learned_chosen_and_reset(folder: Path, writer: Writer) -> None:
    shown = run(folder, "show")
    assert "cosine_similarity" in shown.output
    assert "candidate_only_excess: 0.005 is declared (alerts.tolerated_excess_rate)" in shown.output
    start, end = START + timedelta(seconds=100), START + timedelta(seconds=PAIRS)
    chosen = run(folder, "set", "--from", start.isoformat(), "--to", end.isoformat(), "--note", "calm")
    assert f"cosine_similarity: version 4 of {PAIRS - 100} pairs" in chosen.output
    assert "kl_forced: 0 comparable pairs, needs 2000: kept as it is" in chosen.output
    reset = run(folder, "reset", "--metric", "cosine_similarity")
    assert reset.output == "cosine_similarity: learned anew as version 8\n"
    rows = json.loads(run(folder, "list", "--metric", "cosine_similarity", "--json").output)
    assert [(row["version"], row["chosen_by"], row["is_open"], row["pairs"]) for row in rows] == [
        (7, "person", True, 0),
        (4, "person", False, PAIRS - 100),
        (1, "program", False, 2000),
    ]
    assert rows[1]["note"].endswith(": calm")
    assert rows[1]["mean"] == pytest.approx(0.91, abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "kl_forced"], r"kl_forced of e-\w+/q4 has 0 comparable pairs in that time"),
        (["--metric", "kl"], "no metric is called kl"),
        (["--metric", "candidate_only_excess"], "is declared, not a baseline"),
        (["--candidate", "q5"], "has no candidate q5; it has q4"),
    ],
)
def test_what_cannot_be_is_one_line(folder: Path, writer: Writer, arguments: list[str], message: str) -> None:
    failed = run(folder, "set", "--from", START.isoformat(), *arguments)
    assert isinstance(failed.exception, FatalError)
    with pytest.raises(FatalError, match=message):
        raise failed.exception


def test_time_that_ends_before_it_begins_is_refused(folder: Path, writer: Writer) -> None:
    refused = run(folder, "set", "--from", "1h", "--to", "2h")
    assert refused.exit_code == 2
    assert "--from must be before --to" in refused.output
