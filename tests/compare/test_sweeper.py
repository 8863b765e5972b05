"""Orphans planted in every side table of the real engine, and what must survive beside them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compare.outcomes import Batch, ComparedPair, DeliveredRange
from compare.store import Store
from compare.sweeper import SIDE_TABLES, Sweeper
from compare.writer import Writer
from ingest.records import SourcePosition
from tests.compare.batches import batch, compared, mirrored, other, position
from tests.compare.test_read_back import Killed, _KilledError

NOW = datetime.now(UTC)
TABLES = (*SIDE_TABLES, "requests")


def attempt(
    offset: int, topic_id: str, ago: timedelta = timedelta(hours=3), *, experiment: str = "e", **changes: Any
) -> ComparedPair:
    request = mirrored(offset, position=position(offset, topic_id=topic_id), ingested_at=NOW - ago)
    return compared(offset, request=request, experiment=experiment, **changes)


def write(store: Store, *pairs: ComparedPair, experiment: str = "e") -> None:
    Writer(store, threading.Event()).write(batch(*pairs, experiment=experiment))


def kill_before_pairs(store: Store, made: Batch) -> None:
    with pytest.raises(_KilledError):
        Writer(Killed(store), threading.Event()).write(made)


def range_to(store: Store, topic_id: str, end: int) -> None:
    delivered = DeliveredRange("group", "gnomon.mirror", topic_id, 0, 0, end, end)
    Writer(store, threading.Event()).write(batch(ranges=(delivered,)))


def offsets(store: Store, topic_id: str, table: str) -> set[int]:
    return {n for (n,) in store.query(f"SELECT offset FROM {table} WHERE topic_id = '{topic_id}'").rows}


def test_every_table_with_an_attempt_is_swept(migrated_store: Store) -> None:
    rows = migrated_store.query(
        "SELECT table FROM system.columns WHERE database = {d:String} AND name = 'attempt_id'"
        " AND table NOT LIKE '%\\_v1'",
        {"d": migrated_store.database},
    ).rows
    assert {table for (table,) in rows} == {*SIDE_TABLES, "pairs"}


@pytest.fixture
def unmerged_store(migrated_store: Store) -> Iterator[Store]:
    """Replaced rows stay in the raw tables. (Stopped merges would stop mutations too.)"""
    for table in TABLES:
        migrated_store.command(
            f"ALTER TABLE {table} MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1"
        )
    yield migrated_store
    for table in TABLES:
        migrated_store.command(f"ALTER TABLE {table} RESET SETTING max_bytes_to_merge_at_max_space_in_pool")


def wait_for_deletes(store: Store) -> None:
    deadline = time.monotonic() + 30
    while store.query("SELECT count() FROM system.mutations WHERE NOT is_done").rows != [(0,)]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def sweep_from(store: Store, experiment: str, topic_id: str, start: int, partition: int = 0) -> None:
    Sweeper(store, experiment).sweep_from(SourcePosition("gnomon.mirror", topic_id, partition, start))
    wait_for_deletes(store)


def test_orphans_below_the_end_go_and_nothing_else(unmerged_store: Store) -> None:
    store = unmerged_store
    write(store, attempt(0, "sw-1"), attempt(1, "sw-1", timedelta(days=2)))
    old = timedelta(days=2)
    kill_before_pairs(store, batch(attempt(2, "sw-1"), attempt(3, "sw-1", old)))
    # Not yet below the end of a range: it may be in flight while the store is away for hours.
    kill_before_pairs(store, batch(attempt(8, "sw-1", old)))
    # Younger than an hour.
    kill_before_pairs(store, batch(attempt(4, "sw-1", timedelta(minutes=5))))
    # Replaced by an attempt that came through.
    kill_before_pairs(store, batch(attempt(5, "sw-1", timedelta(hours=4))))
    write(store, attempt(5, "sw-1"))
    range_to(store, "sw-1", 6)
    before = {table: store.query(f"SELECT count() FROM {table}_v1").rows for table in SIDE_TABLES}
    sweeper = Sweeper(store, "e")
    swept = sweeper.sweep()
    wait_for_deletes(store)
    for table in SIDE_TABLES:
        assert offsets(store, "sw-1", table) == {0, 1, 4, 5, 8}, table
        rows = store.query(
            f"SELECT uniqExact(version) FROM {table} WHERE topic_id = 'sw-1' AND offset = 5"
        ).rows
        assert rows == [(1,)], table
    # Requests are shared by all experiments, so they stay for a day.
    assert offsets(store, "sw-1", "requests") == {0, 1, 2, 4, 5, 8}
    # Three observations (the reference was asked twice) and one row each in the others; offset 5 had none
    # in the views.
    views = {table: store.query(f"SELECT count() FROM {table}_v1").rows for table in SIDE_TABLES}
    assert {table: before[table][0][0] - views[table][0][0] for table in SIDE_TABLES} == {
        "observations": 6, "tokens": 6, "positions": 2, "findings": 2, "noise_pairs": 2, "forced_pairs": 2,
    }  # fmt: skip
    # Offsets 2, 3 and the replaced 5 in each side table, and one request.
    assert swept == 3 * len(SIDE_TABLES) + 1
    assert sweeper.sweep() == 0


def test_at_assignment_all_orphans_from_the_offset_on_go(migrated_store: Store) -> None:
    store = migrated_store
    write(store, attempt(4, "sw-2"), attempt(6, "sw-2"))
    young = timedelta(0)
    kill_before_pairs(store, batch(attempt(3, "sw-2"), attempt(5, "sw-2", young), attempt(7, "sw-2", young)))
    sweep_from(store, "e", "sw-2", 4)
    for table in TABLES:
        assert offsets(store, "sw-2", table) == {3, 4, 6}, table
    sweep_from(store, "e", "sw-2", 0, partition=1)
    assert offsets(store, "sw-2", "findings") == {3, 4, 6}


def test_a_shared_request_stays_where_there_are_other_experiments(migrated_store: Store) -> None:
    store = migrated_store
    kill_before_pairs(store, batch(attempt(0, "sw-3", experiment="e2"), experiment="e2"))
    store.command(
        "INSERT INTO experiments (experiment, settings_hash, ingested_at)"
        " VALUES ('e', 'h', now()), ('e2', 'h', now())"
    )
    try:
        sweep_from(store, "e", "sw-3", 0)
        assert offsets(store, "sw-3", "findings") == {0}
        sweep_from(store, "e2", "sw-3", 0)
        assert offsets(store, "sw-3", "findings") == set()
        assert offsets(store, "sw-3", "requests") == {0}
    finally:
        store.command("TRUNCATE TABLE experiments")


def test_dead_letters_without_their_outcome_go(migrated_store: Store) -> None:
    store = migrated_store
    writer = Writer(store, threading.Event())
    writer.write(batch(others=(other(0, "dead_letter", topic_id="sw-4"),)))
    store.command(
        "INSERT INTO dead_letters (experiment, topic_id, partition, offset, source, ingested_at, version)"
        " SELECT 'e', 'sw-4', 0, number + 1, if(number = 0, 'record', 'tokens'), now64(3), 1 FROM numbers(2)"
    )
    sweep_from(store, "e", "sw-4", 0)
    assert offsets(store, "sw-4", "dead_letters") == {0, 2}


def test_all_candidates_of_a_record_stand_or_fall_together(migrated_store: Store) -> None:
    """The reference's rows carry the first candidate's attempt, whose own pair may be refused."""
    store = migrated_store
    request = mirrored(0, position=position(0, topic_id="sw-5"), ingested_at=NOW - timedelta(hours=3))
    both = [compared(0, candidate_name=name, request=request) for name in ("q4", "q8")]
    kill_before_pairs(store, batch(*both))
    Writer(OnlyPairs(store), threading.Event()).write(batch(both[1]))
    sweep_from(store, "e", "sw-5", 0)
    assert len(store.query("SELECT * FROM findings WHERE topic_id = 'sw-5'")) == 2


class OnlyPairs(Killed):
    """Stores `pairs` and nothing else."""

    def insert(self, table: str, *arguments: Any, **options: Any) -> None:
        if table == "pairs":
            self._store.insert(table, *arguments, **options)

    def insert_columns(self, table: str, *arguments: Any, **options: Any) -> None:
        if table == "pairs":
            self._store.insert_columns(table, *arguments, **options)
