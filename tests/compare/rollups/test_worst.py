"""`rollup_worst` holds the first pairs of every list that the explorer may ask for."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any

import pytest

from compare.rollups import rebuild, select
from compare.rollups.rebuild import Rollups
from compare.store import Store
from tests.compare.rollups.raw_rows import TODAY, YESTERDAY, pair, put

KEPT = 3


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "WORST_ROWS", KEPT)


def expected(store: Store) -> dict[tuple[Any, ...], list[tuple[int, int]]]:
    """By hour of ingested_at and what a list may be narrowed to: the keys of the most severe pairs."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in store.query("SELECT * FROM pairs_v1").dicts():
        hour = row["ingested_at"].replace(minute=0, second=0, microsecond=0)
        families = tuple(map(tuple, (row["candidate_fault_families"], row["reference_fault_families"])))
        cells[hour, row["candidate"], row["verdict"], row["route"], *families].append(row)

    def rank(row: dict[str, Any]) -> tuple[float, int, int]:
        severity = -1.0 if row["severity"] is None else row["severity"]
        return -severity, row["partition"], row["offset"]

    return {
        cell: [(row["partition"], row["offset"]) for row in sorted(rows, key=rank)[:KEPT]]
        for cell, rows in cells.items()
    }


def stored(store: Store) -> dict[tuple[Any, ...], list[tuple[int, int]]]:
    cells = defaultdict(list)
    rows = store.query(
        "SELECT * FROM rollup_worst_v1 ORDER BY severity DESC NULLS LAST, `partition`, `offset`"
    ).dicts()
    for row in rows:
        families = tuple(map(tuple, (row["candidate_fault_families"], row["reference_fault_families"])))
        cell = (row["ingested_hour"], row["candidate"], row["verdict"], row["route"], *families)
        cells[cell].append((row["partition"], row["offset"]))
    return dict(cells)


def fill(store: Store) -> None:
    for number, noon in enumerate((YESTERDAY, TODAY)):
        rows = [pair(1000 * number + n, noon - timedelta(minutes=n)) for n in range(300)]
        put(store, "pairs", rows)


def test_the_most_severe_of_each_hour_verdict_route_and_families_are_kept(
    store: Store, rollups: Rollups
) -> None:
    fill(store)
    rollups.rebuild_touched()
    wanted = expected(store)
    assert max(map(len, wanted.values())) == KEPT
    assert stored(store) == wanted


def test_late_and_redelivered_pairs_and_those_that_go_are_followed(store: Store, rollups: Rollups) -> None:
    fill(store)
    rollups.rebuild_touched()
    # A pair of yesterday comes again today, more severe; another of this morning goes.
    put(store, "pairs", [pair(7, TODAY, severity=1.0), pair(5000, TODAY, severity=0.99)])
    store.command("DELETE FROM pairs WHERE `offset` = 1003")
    rollups.rebuild_touched()
    assert stored(store) == expected(store)


def test_a_day_that_was_made_before_the_table_is_made_anew(
    store: Store, rollups: Rollups, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(rebuild, "_LAYOUT", "layout-1")
        older.setattr(rebuild, "_BY_HOUR", {"rollup_hourly": select.fill_hours})
        fill(store)
        rollups.rebuild_touched()
    assert stored(store) == {}
    assert [done.hours for done in rollups.rebuild_touched()] == [0, 0]
    assert stored(store) == expected(store)
    assert rollups.rebuild_touched() == []
