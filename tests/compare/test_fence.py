"""Who may insert, and who is waited for: query ids by hand, running inserts on the real engine's port."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import clickhouse_connect
import pytest
from clickhouse_connect.driver.exceptions import ClickHouseError

from compare.fence import (
    InsertId,
    LostPartitionError,
    OwnedInserts,
    read_insert_id,
    running_inserts,
    wait_out_inserts,
)
from compare.ledger import Ledger
from compare.store import Store
from compare.store.lockfile import read_owner
from ingest.errors import RetryError
from ingest.settings import StoreSettings

TOPIC_ID = "0190f0f2-0000-7000-8000-000000000001"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"gnomon/g/{TOPIC_ID}/1+11/pairs/0123456789abcdef",
            InsertId("g", frozenset({TOPIC_ID}), frozenset({1, 11})),
        ),
        ("gnomon/team/a/g/t1+t2/0/tokens/ff", InsertId("team/a/g", frozenset({"t1", "t2"}), frozenset({0}))),
        ("5f0c gnomon/g/t/3/outcomes/ff", InsertId("g", frozenset({"t"}), frozenset({3}))),
        ("gnomon/g/t/x/outcomes/ff", None),
        ("gnomon/t/1/pairs/ff", None),
        ("another/g/t/1/pairs/ff", None),
        ("", None),
    ],
)
def test_a_query_id_is_read_from_its_end(text: str, expected: InsertId | None) -> None:
    assert read_insert_id(text) == expected


@pytest.mark.parametrize(
    ("group", "topic_id", "partition", "touches"),
    [
        ("g", "t1", 11, True),
        ("g", "t2", 2, True),
        ("g", "t1", 1, False),
        ("g", "t", 11, False),
        ("gg", "t1", 11, False),
    ],
)
def test_only_the_very_group_topic_and_partition_match(
    group: str, topic_id: str, partition: int, touches: bool
) -> None:
    insert = read_insert_id("gnomon/g/t1+t2/11+2/pairs/ff")
    assert insert is not None
    assert insert.touches(group, topic_id, partition) is touches


class Spy:
    """A store that notes what is inserted, and may be made to hang."""

    def __init__(self) -> None:
        self.tables: list[str] = []
        self.may_go = threading.Event()
        self.may_go.set()

    def insert_columns(self, table: str, columns: Any, **options: Any) -> None:
        self.tables.append(table)
        assert self.may_go.wait(20)


def owned_ledger() -> tuple[Ledger, dict[int, int]]:
    ledger = Ledger("g")
    return ledger, {partition: ledger.assign("t", TOPIC_ID, partition, 0) for partition in (0, 1)}


def test_nothing_is_inserted_for_a_partition_that_was_taken_away() -> None:
    ledger, epochs = owned_ledger()
    spy = Spy()
    inserts = OwnedInserts(spy, ledger, threading.Event())
    with inserts.owned(epochs):
        inserts.insert_columns("tokens", {})
        ledger.revoke(1)
        with pytest.raises(LostPartitionError, match="partition 1 was taken away"):
            inserts.insert_columns("pairs", {})
    with inserts.owned({0: epochs[0]}):
        inserts.insert_columns("pairs", {})
    # Given back, it is another assignment: what was made under the old one stays out.
    ledger.assign("t", TOPIC_ID, 1, 0)
    with inserts.owned(epochs), pytest.raises(LostPartitionError):
        inserts.insert_columns("pairs", {})
    assert spy.tables == ["tokens", "pairs"]


def test_without_a_heartbeat_nothing_is_inserted_until_one_comes() -> None:
    ledger, epochs = owned_ledger()
    spy, lease, stop = Spy(), threading.Event(), threading.Event()
    inserts = OwnedInserts(spy, ledger, stop, lease.is_set)

    def insert() -> None:
        with inserts.owned(epochs):
            inserts.insert_columns("pairs", {})

    thread = threading.Thread(target=insert)
    thread.start()
    time.sleep(0.2)
    assert spy.tables == []
    lease.set()
    thread.join(10)
    assert spy.tables == ["pairs"]
    lease.clear()
    stop.set()
    with inserts.owned(epochs), pytest.raises(RetryError, match="Kafka has not confirmed"):
        inserts.insert_columns("pairs", {})


def test_a_woken_owner_learns_that_it_lost_the_partition_before_it_inserts() -> None:
    ledger, epochs = owned_ledger()
    spy = Spy()
    # The first question finds the membership stale; then the listener says what became of it.
    answers = iter([False, True])

    def has_lease() -> bool:
        if answer := next(answers):
            ledger.revoke(0)
        return answer

    inserts = OwnedInserts(spy, ledger, threading.Event(), has_lease)
    with inserts.owned(epochs), pytest.raises(LostPartitionError, match="partition 0"):
        inserts.insert_columns("pairs", {})
    assert spy.tables == []


def test_an_attempt_under_way_is_waited_for() -> None:
    ledger, epochs = owned_ledger()
    spy = Spy()
    spy.may_go.clear()
    inserts = OwnedInserts(spy, ledger, threading.Event())

    def insert() -> None:
        with inserts.owned({1: epochs[1]}):
            inserts.insert_columns("pairs", {})

    thread = threading.Thread(target=insert)
    thread.start()
    while not spy.tables:
        time.sleep(0.005)
    assert inserts.is_idle(0, 0.0)
    assert not inserts.is_idle(1, 0.05)
    spy.may_go.set()
    assert inserts.is_idle(1, 10.0)
    thread.join(10)


@contextmanager
def slow_insert(store: Store, settings: StoreSettings, query_id: str, seconds: float) -> Iterator[list[str]]:
    """An insert through the owner's port under this query id; what it ended with."""
    owner = read_owner(Path(settings.url.removeprefix("chdb://")))
    assert owner is not None
    port = owner.url.rpartition(":")[2]
    client = clickhouse_connect.get_client(
        host="127.0.0.1", port=int(port), password=owner.writer_token, database=store.database,
        autogenerate_session_id=False,
    )  # fmt: skip
    ended: list[str] = []

    def insert() -> None:
        try:
            client.command(
                "INSERT INTO outcomes (experiment, topic_id, partition, offset, ingested_at)"
                f" SELECT 'slow', 's', 1, number + sleepEachRow({seconds / 20}), now() FROM numbers(20)"
                " SETTINGS max_block_size = 1",
                settings={"query_id": query_id},
            )
            ended.append("stored")
        except ClickHouseError as error:
            ended.append(str(error))

    thread = threading.Thread(target=insert)
    thread.start()
    try:
        deadline = time.monotonic() + 20
        while not running_inserts(store, "g", "s", 1):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield ended
    finally:
        thread.join(30)
        client.close()


def test_a_former_owners_insert_is_waited_out(migrated_store: Store, store_settings: StoreSettings) -> None:
    with slow_insert(migrated_store, store_settings, "gnomon/g/s/1/outcomes/ff", 1.0) as ended:
        assert running_inserts(migrated_store, "g", "s", 11) == []
        assert running_inserts(migrated_store, "other", "s", 1) == []
        wait_out_inserts(migrated_store, "g", "s", 1, patience_s=30)
        assert running_inserts(migrated_store, "g", "s", 1) == []
    assert ended == ["stored"]


def test_an_insert_that_goes_on_too_long_is_killed(
    migrated_store: Store, store_settings: StoreSettings
) -> None:
    stored = "SELECT count() FROM outcomes WHERE experiment = 'slow'"
    before = migrated_store.query(stored).rows
    with slow_insert(migrated_store, store_settings, "gnomon/g/s/0+1/outcomes/ff", 40.0) as ended:
        wait_out_inserts(migrated_store, "g", "s", 1, patience_s=0.2)
        assert running_inserts(migrated_store, "g", "s", 1) == []
    assert len(ended) == 1
    assert "cancel" in ended[0].lower() or "killed" in ended[0].lower()
    assert migrated_store.query(stored).rows == before
