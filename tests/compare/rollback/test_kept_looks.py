"""Looks that are kept for whoever evaluates next."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compare.rollback.decisions import read_evaluations
from compare.rollback.engines import Watch
from compare.rollback.kept_looks import decode, encode, page_name, read_looks
from compare.rollback.looks import Look
from compare.rollback.runner import RollbackRunner
from ingest.settings import EndpointSettings
from ingest.settings_rollback import RollbackPage, RollbackRule, RollbackSettings
from tests.compare.rollback.conftest import Planter, settings_file
from tests.compare.rollback.pages import Pages

URL = "http://127.0.0.1:9/metrics"
LOOKS = [
    Look(1000.25, {("a", ()): 1.0, ("b", (("gpu", '0"'),)): -2.5}),
    Look(1060.5, None, "127.0.0.1:9/metrics answered 503"),
    Look(1120.0, {("b", (("gpu", '0"'),)): 3.0}),
    Look(1180.0, {}),
]
RULE = """
[rollback]
interval_s = 600
hold_evaluations = 1
health_path = ""
[[rollback.pages]]
endpoint = "q4"
url = "{url}/metrics"
[[rollback.rules]]
name = "queue"
metrics = ["waiting"]
threshold = 5.0
for_s = 0.5
"""


def test_looks_come_back_as_they_were() -> None:
    histories = {"one": LOOKS, "two": LOOKS[1:2], "none": []}
    assert decode(encode(histories)) == histories
    # Nothing of what was not there takes room: a series is named once.
    assert encode(histories).count("gpu") == 1


def watch(*rules: RollbackRule, url: str = URL) -> Watch:
    settings = RollbackSettings(
        pages=[RollbackPage("q4", url)],
        rules=list(rules),
        health_path="",
        without_rules=["health-failed", "restarts", "gpu-xid", "kv-cache-full", "preemptions"],
    )
    return Watch("q4", EndpointSettings("http://127.0.0.1:9"), settings)


def test_only_looks_that_asked_for_the_same_are_taken_over() -> None:
    rule = RollbackRule("r", ["errors_total"], threshold=0.0, of="increase", over_s=3600.0)
    kept = {page_name(URL, frozenset({"errors_total"})): [Look(1000.0, {("errors_total", ()): 7.0})]}
    same = watch(rule)
    same.recall(kept)
    assert {page: list(looks) for page, looks in same.looks.items()} == kept
    # A look that did not ask for a counter would make it seem to have grown from nothing.
    for other in (watch(rule, RollbackRule("s", ["more"], threshold=0.0)), watch(rule, url=URL + "?x=1")):
        other.recall(kept)
        assert not any(other.looks.values())


def test_a_second_process_takes_over_what_the_first_one_saw(
    planter: Planter, caplog: pytest.LogCaptureFixture
) -> None:
    with Pages() as pages:
        pages.gauge("waiting").set(6)
        values: dict[str, Any] = {
            "pages": [{"endpoint": "q4", "url": f"{pages.url}/metrics?token=hush"}],
            "rules": [{"name": "queue", "metrics": ["waiting"], "threshold": 5.0}],
        }
        first = RollbackRunner(planter.store, planter.settings(**values))
        for count in (1, 2):
            first.run_once()
            ((looks,),) = [
                list(one.values()) for one in read_looks(planter.store, planter.experiment).values()
            ]
            assert [look.values for look in looks] == [{("waiting", ()): 6.0}] * count
        RollbackRunner(planter.store, planter.settings(**values)).run_once()
        (after,) = read_looks(planter.store, planter.experiment)["q4"].values()
        assert after[:2] == looks and len(after) == 3
        mine = f"FROM rollback_state FINAL WHERE experiment = '{planter.experiment}'"
        ((kept,),) = planter.store.query(f"SELECT looks {mine}").rows
        assert "hush" not in kept
        # Another version's form is no reason to stop looking.
        planter.store.command(
            "INSERT INTO rollback_state SELECT * REPLACE('{\"x\": 1}' AS looks, version + 1 AS version) "
            + mine
        )
        RollbackRunner(planter.store, planter.settings(**values)).run_once()
        assert "candidate q4 cannot be read, looking anew" in caplog.text


def test_a_rule_with_a_duration_fires_in_the_second_of_two_calls_of_watch_once(
    planter: Planter, folder: Path, tmp_path: Path
) -> None:
    config = tmp_path / "gnomon.toml"
    states = []
    with Pages() as pages:
        pages.gauge("waiting").set(6)
        config.write_text(settings_file(planter.experiment, folder, pages.url) + RULE.format(url=pages.url))
        for _ in range(2):
            command = [sys.executable, "-m", "compare.cli.main", "watch", "--once", "--config", str(config)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
            (last,) = read_evaluations(planter.store, planter.experiment)
            states.append((last.condition_c, last.is_called))
    assert states == [("quiet", False), ("firing", True)]
    (found,) = json.loads(last.evidence)["C"]["evidence"]["rules"][:1]
    assert found["rule"] == "queue" and found["series"][0]["held_s"] >= 0.5
