"""What scheduled runs say becomes one alert: fires, gets worse, is resolved."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from compare.alerts.alert import Alert
from compare.golden.alerting import next_alert, raise_alerts
from compare.golden.run import GoldenRun
from compare.golden.run_log import write_run
from compare.store import Store
from ingest.settings_golden import GoldenSettings
from tests.compare.golden.rig import result, run

SETTINGS = GoldenSettings(set="s")


@pytest.fixture
def store(migrated_store: Store) -> Iterator[Store]:
    for table in ("golden_runs", "golden_results", "alerts"):
        migrated_store.command(f"TRUNCATE TABLE {table}")
    yield migrated_store


def newest_first(*means: float) -> list[GoldenRun]:
    return [run(number, mean) for number, mean in enumerate(means)][::-1]


def told(alert: Alert | None) -> tuple[str, str, int] | None:
    return None if alert is None else (alert.state, alert.severity, alert.version)


@pytest.mark.parametrize(("means", "expected"), [
    ([], None),
    ([0.9], None),
    ([0.85], None),
    ([0.849], ("firing", "warning", 1)),
    ([0.7], ("firing", "warning", 1)),
    ([0.7, 0.7], ("firing", "critical", 1)),
    ([0.7, 0.82], ("firing", "warning", 1)),
    ([0.7, 0.9], None),
])  # fmt: skip
def test_without_an_open_alert(means: list[float], expected: tuple[str, str, int] | None) -> None:
    assert told(next_alert(newest_first(*means), None, SETTINGS, in_a_row=2)) == expected


@pytest.mark.parametrize(("in_a_row", "words"), [(1, "a run"), (3, "3 runs in a row"), (4, None)])
def test_critical_after_as_many_runs_as_condition_a_takes(in_a_row: int, words: str | None) -> None:
    fired = next_alert(newest_first(0.7, 0.7, 0.7), None, SETTINGS, in_a_row=in_a_row)
    assert fired is not None
    assert fired.severity == ("warning" if words is None else "critical")
    assert fired.summary.endswith(f"; condition A: {words} under 0.8") is (words is not None)


def test_the_life_of_an_alert() -> None:
    fired = next_alert(newest_first(0.9, 0.82), None, SETTINGS, in_a_row=2)
    assert fired is not None and told(fired) == ("firing", "warning", 1)
    assert fired.started_at == run(1).started_at and fired.fired_at == run(1).finished_at
    assert (fired.statistic, fired.threshold, fired.slice) == (0.82, 0.85, "s")
    assert "mean score 0.820 is under 0.85; 1 of 4 cases failed" in fired.summary
    # The same runs again say nothing new, nor does another low one.
    assert next_alert(newest_first(0.9, 0.82), fired, SETTINGS, in_a_row=2) is None
    assert next_alert(newest_first(0.9, 0.82, 0.7), fired, SETTINGS, in_a_row=2) is None
    worse = next_alert(newest_first(0.9, 0.82, 0.7, 0.7), fired, SETTINGS, in_a_row=2)
    assert worse is not None and told(worse) == ("firing", "critical", 2)
    assert (worse.alert_id, worse.started_at) == (fired.alert_id, fired.started_at)
    assert "condition A: 2 runs in a row under 0.8" in worse.summary
    assert next_alert(newest_first(0.9, 0.82, 0.7, 0.7, 0.7), worse, SETTINGS, in_a_row=2) is None
    assert next_alert(newest_first(0.9, 0.82, 0.7, 0.7, 0.83), worse, SETTINGS, in_a_row=2) is None
    over = next_alert(newest_first(0.9, 0.82, 0.7, 0.7, 0.9), worse, SETTINGS, in_a_row=2)
    assert over is not None and told(over) == ("resolved", "critical", 3)
    assert over.resolved_at == run(4).finished_at
    assert next_alert(newest_first(0.9, 0.82, 0.7, 0.7, 0.9), over, SETTINGS, in_a_row=2) is None
    again = next_alert(newest_first(0.9, 0.82, 0.7, 0.7, 0.9, 0.6), over, SETTINGS, in_a_row=2)
    assert again is not None and told(again) == ("firing", "warning", 1)
    assert again.alert_id != fired.alert_id


def test_an_incomplete_run_neither_fires_nor_resolves() -> None:
    fired = next_alert(newest_first(0.7), None, SETTINGS, in_a_row=2)
    for mean in (0.1, 0.99):
        runs = [run(1, mean, status="incomplete"), run(0, 0.7)]
        assert next_alert(runs, fired, SETTINGS, in_a_row=2) is None
    assert next_alert([run(0, 0.1, status="incomplete")], None, SETTINGS, in_a_row=2) is None


def test_it_is_stored_once_and_only_for_scheduled_runs(store: Store) -> None:
    def raised() -> list[Alert]:
        return raise_alerts(store, SETTINGS, "e", "s", "cand", in_a_row=2)

    write_run(store, run(0, 0.5, started_by="command"), [], None)
    assert raised() == []
    low = run(1, 0.5)
    write_run(store, low, [result("b", 0.2, "failed"), result("a", 0.1, "failed"), result("c")], None)
    (fired,) = raised()
    assert fired.summary.endswith(f"(run {low.run_id}): a, b")
    assert raised() == []
    write_run(store, run(2, 0.95), [], None)
    (resolved,) = raised()
    assert (resolved.alert_id, resolved.state, resolved.version) == (fired.alert_id, "resolved", 2)
    assert raised() == []
    rows = store.query("SELECT state, category, metric, slice, candidate FROM alerts_v1").rows
    assert rows == [("resolved", "golden", "golden_mean_score", "s", "cand")]


def test_a_kill_between_run_and_alert_loses_nothing(store: Store) -> None:
    write_run(store, run(0, 0.5), [], None)
    first = next_alert([run(0, 0.5)], None, SETTINGS, in_a_row=2)
    (raised,) = raise_alerts(store, SETTINGS, "e", "s", "cand", in_a_row=2)
    assert first is not None
    assert msgspec.structs.replace(raised, summary="") == msgspec.structs.replace(first, summary="")
