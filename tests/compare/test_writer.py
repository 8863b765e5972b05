from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from compare.outcomes import Batch
from compare.rows import rows_of
from compare.store import Store
from compare.writer import WRITE_ORDER, Writer
from ingest.errors import DeadLetterError, FatalError, RetryError
from tests.compare import batches


@pytest.fixture
def topic_id() -> str:
    return str(uuid.uuid4())


@pytest.fixture
def writer(migrated_store: Store) -> Writer:
    return Writer(migrated_store, threading.Event(), group="g")


def pairs_of(topic_id: str, *offsets: int) -> Batch:
    requests = [batches.mirrored(n, position=batches.position(n, topic_id=topic_id)) for n in offsets]
    return batches.batch(
        *[batches.compared(request.position.offset, request=request) for request in requests]
    )


def stored_offsets(store: Store, table: str, topic_id: str) -> list[int]:
    sql = f"SELECT offset FROM {table} WHERE topic_id = {{topic_id:String}} ORDER BY offset"
    return [row[0] for row in store.query(sql, {"topic_id": topic_id})]


class Away:
    """Fails the first inserts as a store does that is away, then hands over to the real one."""

    def __init__(self, store: Store, failures: int) -> None:
        self._store = store
        self.failures = failures
        self.seen: list[tuple[str, Any, str | None, str | None]] = []

    def insert_columns(
        self,
        table: str,
        columns: Mapping[str, Sequence[Any]],
        *,
        dedup_token: str | None = None,
        query_id: str | None = None,
    ) -> None:
        self.seen.append((table, columns, dedup_token, query_id))
        if self.failures:
            self.failures -= 1
            raise RetryError("store is away")
        self._store.insert_columns(table, columns, dedup_token=dedup_token, query_id=query_id)


class Refuses:
    """Refuses the rows of some tables for good."""

    def __init__(self, *tables: str) -> None:
        self._tables = tables
        self.stored: list[str] = []

    def insert_columns(self, table: str, columns: Any, **_: Any) -> None:
        if table in self._tables:
            raise DeadLetterError("store_refused", f"{table} takes nothing")
        self.stored.append(table)


def test_a_whole_batch_reaches_every_table(migrated_store: Store, writer: Writer, topic_id: str) -> None:
    whole = batches.batch(
        *pairs_of(topic_id, 0, 1, 2).pairs,
        others=(
            batches.other(3, topic_id=topic_id),
            batches.other(4, "dead_letter", "invalid_json", topic_id=topic_id),
        ),
        ranges=(batches.delivered(0, 5, 5, topic_id=topic_id),),
    )
    result = writer.write(whole)
    assert result.refused == ()
    assert result.rows == {name: len(table.rows) for name, table in rows_of(whole).items()}
    (accounting,) = migrated_store.query(
        "SELECT consumed, compared, skipped, failed, dead_lettered, unaccounted FROM accounting_v1 "
        "WHERE topic_id = {topic_id:String}",
        {"topic_id": topic_id},
    )
    assert accounting == (5, 3, 1, 0, 1, 0)
    (letter,) = migrated_store.query(
        "SELECT hex(value), hex(headers[1].value), reason FROM dead_letters_v1 WHERE topic_id = {t:String}",
        {"t": topic_id},
    )
    assert letter == (b"\xff\x00broken".hex().upper(), "FE", "invalid_json")


def test_side_tables_come_first_then_pairs_then_ranges(migrated_store: Store, topic_id: str) -> None:
    spy = Away(migrated_store, 0)
    whole = batches.batch(
        *pairs_of(topic_id, 0).pairs, ranges=(batches.delivered(0, 1, 1, topic_id=topic_id),)
    )
    Writer(spy, threading.Event()).write(whole)
    tables = [table for table, *_ in spy.seen]
    assert tables[-2:] == ["pairs", "delivered_ranges"]
    assert tables == [table for table in WRITE_ORDER if table in tables]


def test_a_store_that_is_away_gets_the_same_rows_and_token_until_it_takes_them(
    migrated_store: Store, topic_id: str
) -> None:
    away = Away(migrated_store, 4)
    result = Writer(away, threading.Event(), group="g", first_wait_s=0.001).write(pairs_of(topic_id, 0))
    assert result.retries == 4
    first, *again = away.seen[:5]
    assert first[3] is not None
    assert first[3].startswith(f"gnomon/g/{topic_id}/0/requests/")
    for attempt in again:
        assert attempt[1] is first[1]
        assert attempt[2:] == first[2:]
    assert stored_offsets(migrated_store, "pairs", topic_id) == [0]


def test_retries_end_when_told_to_stop(migrated_store: Store, topic_id: str) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(RetryError, match="store is away"):
        Writer(Away(migrated_store, 1), stop).write(pairs_of(topic_id, 0))
    assert stored_offsets(migrated_store, "pairs", topic_id) == []


def test_a_batch_written_again_leaves_the_raw_tables_as_they_were(
    migrated_store: Store, writer: Writer, topic_id: str
) -> None:
    batch = pairs_of(topic_id, 0, 1)
    for _ in range(3):
        writer.write(batch)
    assert stored_offsets(migrated_store, "pairs", topic_id) == [0, 1]
    assert len(stored_offsets(migrated_store, "observations", topic_id)) == 6


@pytest.fixture
def refusing(migrated_store: Store) -> Iterator[Store]:
    """A store that refuses pairs whose request id is `r-13`, and observations of `r-14`."""
    migrated_store.command("ALTER TABLE pairs ADD CONSTRAINT no_13 CHECK request_id != 'r-13'")
    migrated_store.command("ALTER TABLE observations ADD CONSTRAINT no_14 CHECK request_id != 'r-14'")
    yield migrated_store
    migrated_store.command("ALTER TABLE pairs DROP CONSTRAINT no_13")
    migrated_store.command("ALTER TABLE observations DROP CONSTRAINT no_14")


def test_a_row_that_the_engine_refuses_is_kept_apart_and_the_rest_is_stored(
    refusing: Store, writer: Writer, topic_id: str
) -> None:
    batch = batches.batch(
        *pairs_of(topic_id, *range(10, 21)).pairs, ranges=(batches.delivered(10, 21, 11, topic_id=topic_id),)
    )
    result = writer.write(batch)
    assert {(row.table, row.offset) for row in result.refused} == {("pairs", 13), ("observations", 14)}
    assert result.rows["pairs"] == 10
    assert stored_offsets(refusing, "pairs_v1", topic_id) == [10, 11, 12, *range(14, 21)]
    assert set(stored_offsets(refusing, "observations_v1", topic_id)) == set(range(10, 21)) - {14}
    letters = refusing.query(
        "SELECT offset, source, reason, JSONExtractString(value, 'request_id') FROM dead_letters_v1 "
        "WHERE topic_id = {topic_id:String} AND source LIKE 'pairs%'",
        {"topic_id": topic_id},
    ).rows
    assert letters == [(13, "pairs:q4", "store_refused", "r-13")]
    (accounting,) = refusing.query(
        "SELECT consumed, compared, dead_lettered, unaccounted FROM accounting_v1 "
        "WHERE topic_id = {t:String}",
        {"t": topic_id},
    )
    assert accounting == (11, 10, 1, 0)


def test_a_dead_letter_that_cannot_be_kept_stops_the_job(topic_id: str) -> None:
    refuses = Refuses("pairs", "dead_letters")
    with pytest.raises(FatalError, match="cannot be kept as a dead letter"):
        Writer(refuses, threading.Event()).write(pairs_of(topic_id, 0))
    assert "delivered_ranges" not in refuses.stored


def test_a_missing_table_stops_the_job(migrated_store: Store, writer: Writer, topic_id: str) -> None:
    migrated_store.command("RENAME TABLE findings TO findings_aside")
    migrated_store._column_types.clear()
    try:
        with pytest.raises(FatalError, match="gnomon migrate"):
            writer.write(pairs_of(topic_id, 0))
    finally:
        migrated_store.command("RENAME TABLE findings_aside TO findings")
    assert stored_offsets(migrated_store, "pairs", topic_id) == []


def test_odd_unicode_is_stored_and_read_back(migrated_store: Store, writer: Writer, topic_id: str) -> None:
    odd = batches.observation("a\ud800b\x00c\U0001f600")
    request = batches.mirrored(0, position=batches.position(0, topic_id=topic_id))
    writer.write(batches.batch(batches.compared(0, request=request, candidate=odd)))
    rows = migrated_store.query(
        "SELECT text FROM observations_v1 WHERE topic_id = {t:String} AND role = 'candidate'", {"t": topic_id}
    ).rows
    assert rows == [("a\ufffdb\x00c\U0001f600",)]
