"""Rollups equal what is counted from the raw views, whatever becomes of the raw rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from compare.rollups.rebuild import Rollups
from compare.store import Store
from compare.store.errors import StoreQueryError
from tests.compare.rollups.raw_rows import (
    DIGESTED,
    TODAY,
    YESTERDAY,
    expected_hours,
    expected_minutes,
    outcome,
    pair,
    put,
)

MINUTE = timedelta(minutes=1)
LEVELS = {"p1": 0.01, "p5": 0.05, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def fill(store: Store) -> None:
    """Two days: 160 pairs over three hours each, and outcomes between them."""
    for number, noon in enumerate((YESTERDAY, TODAY)):
        first = 1000 * number
        at = noon - timedelta(hours=2)
        put(store, "pairs", [pair(first + n, at + n * MINUTE) for n in range(160)])
        put(store, "outcomes", [outcome(first + 500 + n, at + n * 3 * MINUTE) for n in range(40)])


def assert_equal_to_raw(store: Store) -> None:
    expected = expected_hours(store)
    stored = {
        tuple(row[name] for name in ("hour", "experiment", "candidate", "dimension", "value")): row
        for row in store.query("SELECT * FROM rollup_hourly_v1").dicts()
    }
    assert stored.keys() == expected.keys()
    for key, wanted in expected.items():
        row = stored[key]
        for name, value in wanted.items():
            if name in DIGESTED:
                for suffix, level in LEVELS.items():
                    assert_is_quantile(row[f"{name}_{suffix}"], value, level)
            else:
                assert row[name] == (pytest.approx(value) if name.endswith("_mean") else value), (key, name)
    minutes = {row[:5]: row[5:] for row in store.query("SELECT * FROM rollup_minutes_v1").rows}
    assert minutes == {key: pytest.approx(value) for key, value in expected_minutes(store).items()}


def assert_is_quantile(value: float | None, ordered: list[float], level: float) -> None:
    """Between the order statistics around the level: a digest of few values keeps each of them."""
    if not ordered:
        assert value is None
        return
    assert value is not None
    at = level * len(ordered)
    low, high = max(int(at) - 1, 0), min(int(at) + 1, len(ordered) - 1)
    assert ordered[low] * (1 - 1e-6) <= value <= ordered[high] * (1 + 1e-6)


def days(rollups: Rollups) -> list[Any]:
    return [done.day for done in rollups.rebuild_touched()]


def test_rollups_equal_the_raw_views_and_are_left_alone_when_nothing_changed(
    store: Store, rollups: Rollups
) -> None:
    fill(store)
    assert days(rollups) == [YESTERDAY.date(), TODAY.date()]
    assert_equal_to_raw(store)
    assert days(rollups) == []
    store.command("OPTIMIZE TABLE pairs FINAL")
    assert days(rollups) == []


def test_late_pairs_are_added_and_only_their_hours_are_made_anew(store: Store, rollups: Rollups) -> None:
    fill(store)
    rollups.rebuild_touched()
    put(store, "pairs", [pair(5000 + n, YESTERDAY + n * MINUTE) for n in range(20)])
    (done,) = rollups.rebuild_touched()
    assert (done.day, done.hours) == (YESTERDAY.date(), 1)
    assert_equal_to_raw(store)


@pytest.mark.parametrize("moment", [YESTERDAY + 5 * MINUTE, YESTERDAY + timedelta(hours=5), TODAY])
def test_pairs_delivered_again_replace_the_first(store: Store, rollups: Rollups, moment: datetime) -> None:
    """Within the hour, in a later hour, on a later day; each with another verdict than before."""
    fill(store)
    rollups.rebuild_touched()
    again = [
        pair(n, moment, verdict="match", is_regression=False, candidate=pair(n, moment)["candidate"])
        for n in range(60, 100)
    ]
    put(store, "pairs", again)
    put(store, "outcomes", [outcome(500 + n, moment, "failed", "endpoint_away") for n in range(5)])
    assert days(rollups) == sorted({YESTERDAY.date(), moment.date()})
    assert_equal_to_raw(store)
    assert days(rollups) == []


def test_the_same_rows_with_a_later_version_change_no_number(store: Store, rollups: Rollups) -> None:
    fill(store)
    rollups.rebuild_touched()
    before = store.query("SELECT * FROM rollup_daily_v1 ORDER BY ALL").rows
    rows = [pair(n, YESTERDAY - timedelta(hours=2) + n * MINUTE) for n in range(160)]
    put(store, "pairs", [{**row, "version": row["version"] + 1} for row in rows])
    assert days(rollups) == [YESTERDAY.date()]
    assert store.query("SELECT * FROM rollup_daily_v1 ORDER BY ALL").rows == before
    assert_equal_to_raw(store)


def test_purged_pairs_leave_the_rollups(store: Store, rollups: Rollups) -> None:
    fill(store)
    rollups.rebuild_touched()
    day = YESTERDAY.date()
    delete = f"DELETE IN PARTITION '{day}' WHERE tenant = 'o\\'neil' SETTINGS mutations_sync = 2"
    store.command(f"ALTER TABLE pairs {delete}")
    assert days(rollups) == [day]
    assert_equal_to_raw(store)
    names = store.query(
        "SELECT DISTINCT value FROM rollup_hourly WHERE dimension = 'tenant' AND day = {d:Date}", {"d": day}
    )
    assert sorted(names.rows) == [("b",), ("c",)]


def test_a_day_that_is_gone_leaves_nothing(store: Store, rollups: Rollups) -> None:
    fill(store)
    rollups.rebuild_touched()
    for table in ("pairs", "outcomes"):
        store.command(f"ALTER TABLE {table} DROP PARTITION '{YESTERDAY.date()}'")
    assert days(rollups) == [YESTERDAY.date()]
    assert_equal_to_raw(store)
    assert store.query("SELECT DISTINCT day FROM rollup_minutes").rows == [(TODAY.date(),)]
    assert days(rollups) == []


def test_a_day_whose_pairs_all_go_keeps_its_other_outcomes(store: Store, rollups: Rollups) -> None:
    fill(store)
    rollups.rebuild_touched()
    store.command("ALTER TABLE pairs DELETE WHERE tenant != '' SETTINGS mutations_sync = 2")
    assert days(rollups) == [YESTERDAY.date(), TODAY.date()]
    assert store.query("SELECT count() FROM rollup_hourly").rows == [(0,)]
    assert_equal_to_raw(store)
    assert days(rollups) == []


def test_reprocessing_as_a_new_experiment_stands_beside_the_old(store: Store, rollups: Rollups) -> None:
    fill(store)
    rollups.rebuild_touched()
    put(store, "pairs", [pair(n, TODAY, experiment="again") for n in range(160)])
    assert days(rollups) == [TODAY.date()]
    assert_equal_to_raw(store)


def test_a_day_can_be_made_anew_by_hand(store: Store, rollups: Rollups) -> None:
    fill(store)
    rollups.rebuild_touched()
    # Changed in place, which nothing in the program does: no key and no version tells of it.
    store.command(
        "ALTER TABLE pairs UPDATE severity = 0.5 WHERE severity IS NOT NULL SETTINGS mutations_sync = 2"
    )
    for noon in (YESTERDAY, TODAY):
        assert rollups.rebuild_day(noon.date()).hours == 3
    assert_equal_to_raw(store)


def test_a_failed_rebuild_leaves_the_old_rows_and_no_staging_table(store: Store, rollups: Rollups) -> None:
    fill(store)
    rollups.rebuild_touched()
    before = store.query("SELECT * FROM rollup_hourly_v1 ORDER BY ALL").rows
    store.command("ALTER TABLE pairs RENAME COLUMN severity TO aside")
    put(store, "pairs", [{k: v for k, v in pair(7000, TODAY).items() if k != "severity"}])
    try:
        with pytest.raises(StoreQueryError):
            rollups.rebuild_touched()
    finally:
        store.command("ALTER TABLE pairs RENAME COLUMN aside TO severity")
    assert store.query("SELECT * FROM rollup_hourly_v1 ORDER BY ALL").rows == before
    assert store.query("SHOW TABLES LIKE '%staging%'").rows == []
    rollups.rebuild_touched()
    assert_equal_to_raw(store)


def test_a_staging_table_left_by_a_kill_is_dropped_in_time(store: Store, rollups: Rollups) -> None:
    for made_at in ("1700000000", "4000000000"):
        store.command(f"CREATE TABLE rollup_hourly_staging_{made_at}_aa AS rollup_hourly")
    rollups.rebuild_touched()
    assert store.query("SHOW TABLES LIKE '%staging%'").rows == [("rollup_hourly_staging_4000000000_aa",)]
    store.command("DROP TABLE rollup_hourly_staging_4000000000_aa")
