"""What is read back of a partition, on the real engine; faults of the store by a store that raises."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from compare.fence import OwnedInserts
from compare.ledger import Ledger
from compare.outcomes import DeliveredRange
from compare.read_back import Preparation, ReadBack, StoredKey
from compare.recent_ids import RecentIds
from compare.store import Store
from compare.store.answer import Result
from compare.sweeper import Sweeper
from compare.writer import Writer
from ingest.assignment import Prepared
from ingest.errors import FatalError, RetryError
from ingest.records import SourcePosition
from tests.compare.batches import batch, compared, mirrored, other, position

TOPIC = "gnomon.mirror"


def store_rows(store: Store, topic_id: str, offsets: range, candidates: tuple[str, ...] = ("q4",)) -> None:
    pairs = [
        compared(n, candidate_name=name, request=mirrored(n, position=position(n, topic_id=topic_id)))
        for n in offsets
        for name in candidates
    ]
    Writer(store, threading.Event()).write(batch(*pairs))


@contextmanager
def reading(store: Any, **options: Any) -> Iterator[ReadBack]:
    ledger = Ledger("group")
    settings = {"experiment": "e", "candidates": ["q4"], "group": "group"} | options
    read_back = ReadBack(store, inserts=OwnedInserts(store, ledger, threading.Event()), **settings)
    try:
        yield read_back
    finally:
        read_back.close()


def prepared(read_back: ReadBack, topic_id: str, start: int) -> Prepared:
    return read_back.prepare(TOPIC, topic_id, 0, start, is_committed=False).future.result(30)


def key(offset: int, *candidates: str) -> StoredKey:
    """What `mirrored` and `compared` of tests.compare.batches make of an offset."""
    return StoredKey(frozenset((name, f"{offset:032x}") for name in candidates or ("q4",)))


async def test_pairs_and_other_outcomes_at_or_above_the_offset_are_found_once(migrated_store: Store) -> None:
    store_rows(migrated_store, "rb-1", range(0, 6), ("q4", "q8", "gone"))
    others = (
        other(6, "skipped", "model", topic_id="rb-1"),
        other(7, "dead_letter", topic_id="rb-1"),
    )
    Writer(migrated_store, threading.Event()).write(batch(others=others))
    # Another experiment, another topic and another partition say nothing about this one.
    store_rows(migrated_store, "rb-other", range(8, 9))
    with reading(migrated_store, candidates=["q4", "q8"]) as read_back:
        prepared(read_back, "rb-1", 4)
        found = [await read_back.find(position(n, topic_id="rb-1")) for n in range(4, 10)]
        assert found == [
            key(4, "q4", "q8"),
            key(5, "q4", "q8"),
            StoredKey(frozenset(), True, "r-6"),
            StoredKey(frozenset(), True, "r-7"),
            None,
            None,
        ]
        assert await read_back.find(position(4, topic_id="rb-1")) is None
        assert await read_back.find(position(4, topic_id="rb-1", partition=1)) is None


async def test_another_experiments_rows_are_not_ours(migrated_store: Store) -> None:
    store_rows(migrated_store, "rb-2", range(0, 2))
    with reading(migrated_store, experiment="e2") as read_back:
        prepared(read_back, "rb-2", 0)
        assert await read_back.find(position(0, topic_id="rb-2")) is None


async def test_more_keys_than_a_window_are_read_window_by_window(migrated_store: Store) -> None:
    store_rows(migrated_store, "rb-3", range(0, 40, 2))
    with reading(migrated_store, window_keys=3) as read_back:
        prepared(read_back, "rb-3", 0)
        found = [await read_back.find(position(n, topic_id="rb-3")) for n in range(45)]
        assert found == [key(n) if n < 40 and n % 2 == 0 else None for n in range(45)]


async def test_a_window_that_offsets_jump_over_is_skipped(migrated_store: Store) -> None:
    store_rows(migrated_store, "rb-4", range(0, 20))
    with reading(migrated_store, window_keys=3) as read_back:
        prepared(read_back, "rb-4", 0)
        assert await read_back.find(position(1, topic_id="rb-4")) == key(1)
        assert await read_back.find(position(17, topic_id="rb-4")) == key(17)
        assert await read_back.find(position(25, topic_id="rb-4")) is None


def test_ranges_that_end_above_the_start_are_told_and_the_highest_version_of_all(
    migrated_store: Store,
) -> None:
    ranges = tuple(
        DeliveredRange("group", TOPIC, "rb-5", 0, first, end, 5, version=version)
        for first, end, version in ((0, 10, 900), (10, 20, 100), (20, 30, 300))
    )
    Writer(migrated_store, threading.Event()).write(batch(ranges=ranges))
    with reading(migrated_store) as read_back:
        assert prepared(read_back, "rb-5", 15) == Prepared({10: 20, 20: 30}, 900)
        assert prepared(read_back, "rb-5", 30) == Prepared({}, 900)
    with reading(migrated_store, group="another") as read_back:
        assert prepared(read_back, "rb-5", 0).ranges == {}


def test_an_offset_that_was_committed_on_a_namesake_is_foreign(migrated_store: Store) -> None:
    store = migrated_store
    topic = "remade"
    old = DeliveredRange("group", topic, "rb-old", 0, 0, 500, 500)
    Writer(store, threading.Event()).write(batch(ranges=(old,)))
    with reading(store) as read_back:

        def is_foreign(topic_id: str, name: str = topic, *, is_committed: bool = True) -> bool:
            asked = read_back.prepare(name, topic_id, 0, 500, is_committed=is_committed)
            return asked.future.result(30).is_offset_foreign

        assert is_foreign("rb-new")
        assert not is_foreign("rb-old")
        # The log's own beginning, and a topic of which nothing was ever stored.
        assert not is_foreign("rb-new", is_committed=False)
        assert not is_foreign("rb-new", name="never stored")
        Writer(store, threading.Event()).write(
            batch(ranges=(msgspec.structs.replace(old, topic_id="rb-new", end_offset=3, records=3),))
        )
        assert not is_foreign("rb-new")


class Flaky:
    """A store that is away until told otherwise, before the real one."""

    def __init__(self, store: Store, error: Exception) -> None:
        self.where = store.where
        self.error: Exception | None = error
        self.asked = 0
        self._store = store

    def query(self, sql: str, parameters: dict[str, Any] | None = None) -> Result:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self._store.query(sql, parameters)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def test_a_store_that_is_away_is_waited_for(migrated_store: Store) -> None:
    store_rows(migrated_store, "rb-6", range(0, 2))
    flaky = Flaky(migrated_store, RetryError("the store is away"))
    with reading(flaky) as read_back:
        asked = read_back.prepare(TOPIC, "rb-6", 0, 0, is_committed=False)
        until(lambda: flaky.asked >= 3)
        assert not asked.done()
        flaky.error = None
        assert asked.future.result(30) == Prepared({}, 0, (0, 1))
        assert await read_back.find(position(1, topic_id="rb-6")) == key(1)


def test_a_partition_taken_away_meanwhile_is_not_waited_for(migrated_store: Store) -> None:
    flaky = Flaky(migrated_store, RetryError("the store is away"))
    with reading(flaky) as read_back:
        first = read_back.prepare(TOPIC, "rb-7", 0, 0, is_committed=False)
        until(lambda: flaky.asked >= 1)
        first.cancel()
        until(first.done)
        flaky.error = None
        assert prepared(read_back, "rb-7", 0) == Prepared({}, 0)


def test_a_store_that_refuses_for_good_ends_it(migrated_store: Store) -> None:
    flaky = Flaky(migrated_store, FatalError("wrong password"))
    with reading(flaky) as read_back, pytest.raises(FatalError, match="wrong password"):
        prepared(read_back, "rb-8", 0)


def test_closing_does_not_wait_for_the_store(migrated_store: Store) -> None:
    flaky = Flaky(migrated_store, RetryError("the store is away"))
    with reading(flaky) as read_back:
        asked = read_back.prepare(TOPIC, "rb-9", 0, 0, is_committed=False)
        until(lambda: flaky.asked >= 1)
    assert asked.done()


async def test_a_later_window_that_cannot_be_read_before_the_end_is_a_retry_error(
    migrated_store: Store,
) -> None:
    store_rows(migrated_store, "rb-10", range(0, 4))
    flaky = Flaky(migrated_store, RetryError("the store is away"))
    flaky.error = None
    with reading(flaky, window_keys=2) as read_back:
        prepared(read_back, "rb-10", 0)
        flaky.error = RetryError("the store is away")
        threading.Timer(0.3, read_back.close).start()
        with pytest.raises(RetryError, match="the run ends"):
            await read_back.find(position(3, topic_id="rb-10"))


def test_ids_are_learnt_and_orphans_swept_before_it_is_done(migrated_store: Store) -> None:
    store = migrated_store
    store_rows(store, "rb-11", range(0, 3))
    learnt: list[tuple[str, SourcePosition]] = []
    with pytest.raises(_KilledError):
        Writer(Killed(store), threading.Event()).write(
            batch(compared(3, request=mirrored(3, position=position(3, topic_id="rb-11"))))
        )
    left = "SELECT count() FROM observations WHERE topic_id = 'rb-11' AND offset = 3"
    assert store.query(left).rows == [(3,)]
    ids = RecentIds(store, "e", learnt.extend, limit=2)
    with reading(store, recent_ids=ids, sweeper=Sweeper(store, "e")) as read_back:
        prepared(read_back, "rb-11", 0)
    until(lambda: store.query(left).rows == [(0,)])
    assert {request_id for request_id, _ in learnt} <= {"r-0", "r-1", "r-2"}
    assert len(learnt) == 2


class _KilledError(Exception):
    pass


class Killed:
    """Dies before `pairs`, as a process that is killed between the side tables and the pairs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def insert(self, table: str, *arguments: Any, **options: Any) -> None:
        if table == "pairs":
            raise _KilledError
        self._store.insert(table, *arguments, **options)

    def insert_columns(self, table: str, *arguments: Any, **options: Any) -> None:
        if table == "pairs":
            raise _KilledError
        self._store.insert_columns(table, *arguments, **options)


def test_a_preparation_that_nobody_waits_for_is_given_up_at_the_end() -> None:
    stop = threading.Event()
    preparation = Preparation(stop)
    assert not preparation.is_given_up
    stop.set()
    assert preparation.is_given_up
