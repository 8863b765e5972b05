"""`gnomon demo` as a user runs it, twice in one folder, on all the real parts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from compare.demo.models import ModelPaths

REQUESTS = 3


def _gnomon(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "compare.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)


def _demo(folder: Path) -> dict[str, Any]:
    done = _gnomon("demo", "--requests", str(REQUESTS), "--dir", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    whole: dict[str, Any] = json.loads(done.stdout)
    return whole


def _sql(folder: Path, statement: str) -> list[dict[str, Any]]:
    done = _gnomon("sql", "--dir", str(folder), "--format", "json", statement)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def test_a_second_run_adds_to_the_first_and_changes_nothing_of_it(
    model_paths: ModelPaths, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    everything = "SELECT * FROM pairs_v1 WHERE experiment = 'demo-1' ORDER BY offset"
    first = _demo(folder)
    kept = _sql(folder, everything)
    second = _demo(folder)

    for number, report in ((1, first), (2, second)):
        assert report["experiment"] == f"demo-{number}"
        assert report["consumed"] == REQUESTS
        outcomes = ("compared", "skipped", "failed", "dead_lettered")
        assert sum(report[name] for name in outcomes) == REQUESTS
        assert report["compared"] == sum(report["verdicts"].values()) == REQUESTS
    # The models are the same, greedy and repeatable, so the second run finds what the first found.
    assert second["verdicts"] == first["verdicts"]
    assert second["scores"]["edit_similarity"] == first["scores"]["edit_similarity"]

    assert len(kept) == REQUESTS
    assert _sql(folder, everything) == kept
    ids = _sql(folder, "SELECT experiment, request_id FROM pairs_v1 ORDER BY request_id")
    assert [row["request_id"] for row in ids] == [f"demo-{k}-{n:03d}" for k in (1, 2) for n in (1, 2, 3)]


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    done = _gnomon("demo", "--requests", "1", "--dir", str(blocked / "data"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("gnomon: ") and done.stderr.count("\n") == 1
    assert os.fspath(blocked) in done.stderr
