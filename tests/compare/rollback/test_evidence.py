"""Conditions A and B as pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import msgspec
import pytest
from scipy.stats import binomtest

from compare.golden.run import GoldenRun, RunStatus, Totals
from compare.rollback.faulty import FaultyCounts, condition_b
from compare.rollback.golden import condition_a
from ingest.served import Served
from ingest.settings_golden import GoldenSettings
from ingest.settings_rollback import RollbackSettings

NOW = datetime(2026, 11, 30, 3, tzinfo=UTC)
SETTINGS = RollbackSettings()
GOLDEN = GoldenSettings()


def run(
    hours_ago: float,
    score: float | None,
    *,
    served: str = "s1",
    status: str = "failed",
    set_name: str = "core",
) -> GoldenRun:
    at = NOW - timedelta(hours=hours_ago)
    return GoldenRun(
        set_name=set_name,
        run_id=f"run-{set_name}-{hours_ago:g}",
        set_hash="h",
        experiment="e",
        settings_hash="",
        role="candidate",
        endpoint_name="q4",
        started_by="schedule",
        started_at=at - timedelta(minutes=1),
        finished_at=at,
        status=cast(RunStatus, status),
        reasons=(),
        totals=Totals(
            cases=1, answered_cases=1, passed_cases=0, exact_rate=None, mean_score=score,
            extraction_accuracy=None, faulty_rate=None,
        ),
        least_mean_score=0.85,
        served=Served(),
        served_hash=served,
    )  # fmt: skip


def a_of(*runs: GoldenRun, settings: RollbackSettings = SETTINGS) -> str:
    return condition_a(runs, settings, GOLDEN, NOW).state


def test_a_is_two_low_runs_in_a_row_that_are_recent() -> None:
    assert a_of(run(0.5, 0.7), run(1.5, 0.79)) == "firing"
    assert a_of(run(1.5, 0.79), run(0.5, 0.7)) == "firing"
    assert a_of(run(0.5, 0.7), run(1.5, 0.8)) == "quiet"
    assert a_of(run(0.5, 0.8), run(1.5, 0.7), run(2.5, 0.7)) == "quiet"
    assert a_of(run(0.5, 0.7)) == "quiet"
    assert a_of() == "off"
    assert condition_a([], SETTINGS, GoldenSettings(set="core"), NOW).state == "unknown"
    assert a_of(settings=msgspec.structs.replace(SETTINGS, golden_set="core")) == "unknown"


def test_a_run_that_says_nothing_is_passed_over() -> None:
    assert a_of(run(0.5, None), run(0.6, 0.7), run(1.5, 0.7)) == "firing"
    assert a_of(run(0.5, 0.1, status="incomplete"), run(1.5, 0.9)) == "quiet"
    assert a_of(run(0.5, 0.1, status="incomplete")) == "off"


def test_a_looks_at_what_serves_now() -> None:
    assert a_of(run(0.5, 0.7, served="s2"), run(1.5, 0.7)) == "quiet"
    assert a_of(run(0.5, 0.7, served="s2"), run(0.9, 0.6, served="s2"), run(1.5, 0.9)) == "firing"


def test_a_is_unknown_once_the_runs_are_old() -> None:
    assert a_of(run(3.0, 0.7), run(3.5, 0.7)) == "firing"
    found = condition_a([run(3.1, 0.7), run(3.5, 0.7)], SETTINGS, GOLDEN, NOW)
    assert found.state == "unknown"
    assert found.summary == "golden set core: the last run ended 3 h 6 min ago, over 10800 s"


def test_a_takes_the_worst_set() -> None:
    other = [run(0.2, 0.95, set_name="b"), run(0.3, 0.95, set_name="b")]
    found = condition_a([*other, run(0.5, 0.7), run(1.5, 0.7)], SETTINGS, GOLDEN, NOW)
    assert found.state == "firing"
    assert found.summary.startswith("golden set core: mean scores")
    assert [one["set"] for one in found.evidence["sets"]] == ["b", "core"]


@pytest.mark.parametrize("pairs", [20, 50, 100, 400, 3000])
def test_b_fires_where_scipys_exact_test_is_sure(pairs: int) -> None:
    fired = []
    for faulty in range(0, pairs // 3 + 1, max(1, pairs // 100)):
        found = condition_b(FaultyCounts(pairs, faulty), SETTINGS)
        low = binomtest(faulty, pairs).proportion_ci(0.90, method="exact").low
        assert found.evidence["lower_bound"] == pytest.approx(low, abs=1e-9)
        assert found.state == ("firing" if low > 0.05 else "quiet")
        fired.append(found.state == "firing")
    assert fired[0] is False and fired[-1] is True


def test_b_needs_pairs_and_says_so() -> None:
    found = condition_b(FaultyCounts(3, 3), SETTINGS)
    assert found.state == "unknown"
    assert found.summary == "3 comparable requests in 10 min, 20 are needed"
    assert condition_b(FaultyCounts(0, 0, away=7), SETTINGS).summary.endswith("was away for 7 records")
    assert (
        condition_b(FaultyCounts(3, 3), msgspec.structs.replace(SETTINGS, faulty_min_pairs=3)).state
        == "firing"
    )
