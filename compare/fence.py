"""Inserts that only an owner makes: before each attempt it is asked whether the partitions are still ours.

Two sides of one fence. `OwnedInserts` keeps the loser of a partition from writing more of it;
`wait_out_inserts` lets its next owner wait for, or kill, what the loser still has running in the
store.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from compare.store.client import Store
from compare.store.cluster_ddl import on_cluster, system_table
from compare.store.errors import StoreQueryError
from compare.writer import Inserts
from ingest.errors import GnomonError, RetryError

PATIENCE_S = 5.0
"""How long another's insert may go on before it is killed."""
_LOOK_AGAIN_S = 0.1
_LEASE_LOG_S = 10.0
_NO_PERMISSION = 497

_log = logging.getLogger(__name__)


class LostPartitionError(GnomonError):
    """The partitions of a batch are no longer all ours: the rest of the batch may not be written."""


class Ownership(Protocol):
    """Whose partition it is now; `compare.ledger.Ledger`."""

    def is_current(self, partition: int, epoch: int) -> bool:
        """Whether this assignment still stands."""


class OwnedInserts:
    """The store as the writer sees it. `insert_columns` raises as the store's, and besides:

    LostPartitionError if a partition named by `owned` was taken away; RetryError if `stop` is set
    while the group membership is in doubt. A process that was stopped past its session timeout does
    not know yet that it lost its partitions, so without a fresh heartbeat nothing is inserted.
    """

    def __init__(
        self,
        store: Inserts,
        ownership: Ownership,
        stop: threading.Event,
        has_lease: Callable[[], bool] = lambda: True,
    ) -> None:
        """`has_lease` tells whether the broker confirmed our membership within the session timeout."""
        self._store = store
        self._ownership = ownership
        self._stop = stop
        self._has_lease = has_lease
        self._epochs: Mapping[int, int] = {}
        self._changed = threading.Condition()
        self._running: frozenset[int] = frozenset()

    @contextmanager
    def owned(self, epochs: Mapping[int, int]) -> Iterator[None]:
        """What is inserted meanwhile belongs to these partitions, by epoch of their assignment."""
        self._epochs = epochs
        try:
            yield
        finally:
            self._epochs = {}

    def insert_columns(
        self,
        table: str,
        columns: Mapping[str, Sequence[Any]],
        *,
        dedup_token: str | None = None,
        query_id: str | None = None,
    ) -> None:
        """See `Store.insert_columns`."""
        with self._attempt():
            self._store.insert_columns(table, columns, dedup_token=dedup_token, query_id=query_id)

    def is_idle(self, partition: int, timeout_s: float) -> bool:
        """Wait until no attempt with rows of this partition is under way; False if it takes longer.

        Once its assignment has ended, no further attempt begins.
        """
        with self._changed:
            return self._changed.wait_for(lambda: partition not in self._running, timeout_s)

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        self._wait_for_lease()
        with self._changed:
            self._require_owned()
            self._running = frozenset(self._epochs)
        try:
            yield
        finally:
            with self._changed:
                self._running = frozenset()
                self._changed.notify_all()

    def _wait_for_lease(self) -> None:
        said = time.monotonic()
        while not self._has_lease():
            self._require_owned()
            if self._stop.wait(_LOOK_AGAIN_S):
                raise RetryError("Kafka has not confirmed that the partitions are still ours")
            if time.monotonic() - said > _LEASE_LOG_S:
                said = time.monotonic()
                _log.warning("nothing is stored until Kafka confirms that the partitions are still ours")

    def _require_owned(self) -> None:
        for partition, epoch in self._epochs.items():
            if not self._ownership.is_current(partition, epoch):
                raise LostPartitionError(f"partition {partition} was taken away while its rows were written")


class InsertId(msgspec.Struct, frozen=True):
    """A query id of `compare.writer`, read: what it inserts, and for whom."""

    group: str
    topic_ids: frozenset[str]
    partitions: frozenset[int]

    def touches(self, group: str, topic_id: str, partition: int) -> bool:
        """Whether it may hold rows of this very partition, for this very group."""
        return self.group == group and topic_id in self.topic_ids and partition in self.partitions


def read_insert_id(text: str) -> InsertId | None:
    """Read `gnomon/<group>/<topic_id>/<partitions>/<table>/<token>`; None for any other text.

    A group's name may hold slashes. Where the embedded engine is reached through its owner, the id
    stands behind another one and a space.
    """
    text = text[text.find("gnomon/") :] if " gnomon/" in text else text
    parts = text.rsplit("/", 4)
    if len(parts) != 5 or not parts[0].startswith("gnomon/"):
        return None
    head, topic_ids, partitions, _, _ = parts
    numbers = partitions.split("+")
    if not all(number.isascii() and number.isdigit() for number in numbers):
        return None
    return InsertId(
        head.removeprefix("gnomon/"), frozenset(topic_ids.split("+")), frozenset(map(int, numbers))
    )


def running_inserts(
    store: Store, group: str, topic_id: str, partition: int, cluster: str | None = None
) -> list[str]:
    """Ids, as the store has them, of running inserts with rows of this partition for this group."""
    rows = store.query(
        "SELECT initial_query_id, query_id, Settings['log_comment']"
        f" FROM {system_table('processes', cluster)}"
        " WHERE query_kind = 'Insert' OR query_kind = 'AsyncInsertFlush'"
    ).rows
    found = []
    for initial, query_id, comment in rows:
        for text in (initial, comment):
            insert = read_insert_id(str(text))
            if insert is not None and insert.touches(group, topic_id, partition):
                found.append(str(query_id))
                break
    return found


def wait_out_inserts(
    store: Store,
    group: str,
    topic_id: str,
    partition: int,
    *,
    cluster: str | None = None,
    patience_s: float = PATIENCE_S,
    is_given_up: Callable[[], bool] = lambda: False,
) -> None:
    """Return once no insert of this group and partition runs in the store, or `is_given_up` is true.

    What runs longer than `patience_s` is killed. A user that may not kill goes on waiting. Raises
    what the store raises.
    """
    began = time.monotonic()
    while running := running_inserts(store, group, topic_id, partition, cluster):
        if is_given_up():
            return
        if time.monotonic() - began >= patience_s:
            _log.warning(
                "partition %d: %d inserts of its former owner run for over %.0f s and are killed",
                partition, len(running), patience_s,
            )  # fmt: skip
            _kill(store, running, cluster)
            began = time.monotonic()
        time.sleep(_LOOK_AGAIN_S)


def _kill(store: Store, query_ids: Sequence[str], cluster: str | None) -> None:
    try:
        store.command(
            f"KILL QUERY{on_cluster(cluster)} WHERE has({{ids:Array(String)}}, query_id) SYNC",
            {"ids": list(query_ids)},
        )
    except StoreQueryError as error:
        if error.code != _NO_PERMISSION:
            raise
        _log.warning("%s; waiting for them instead", error)
