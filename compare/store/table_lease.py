"""A lease that one process at a time holds: the compare-and-set that ClickHouse's rows lack.

CREATE TABLE without IF NOT EXISTS is one, since of two that try one name one fails. Generation n of the
lease `x` is the table `x_<n>`, and its comment says who holds it, since when and until when. Generation
n + 1 may be created once lease n was given back or has run out. A holder writes to its own generation
alone, and renews it while it works: one that was killed holds the others up for the rest of its lease at
most. A generation is dropped only when a later one exists, so a process that slept through several sees
that its own is not the last.

Times are the server's, so the clocks of the processes do not matter. A holder that was stopped for longer
than its lease may still finish the one statement that it was at: what is written under a lease must bear
that (`generation` is the fence: it grows with every holder).
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import socket
import threading
import time
from datetime import datetime, timedelta

import msgspec

from compare.store.client import Store
from compare.store.cluster_ddl import on_cluster
from compare.store.errors import StoreQueryError
from compare.store.live_schema import rows_if_there
from ingest.errors import FatalError, RetryError

_TABLE_EXISTS = 57

_log = logging.getLogger(__name__)


def lease_name(kind: str, experiment: str) -> str:
    """The name of an experiment's lease of this kind: its own may hold what a table's may not."""
    return f"{kind}_lease_{hashlib.sha256(experiment.encode()).hexdigest()[:16]}"


class Lease(msgspec.Struct, frozen=True):
    """The comment of a generation's table, as JSON. Times are the server's, UTC."""

    holder: str
    token: str
    since: datetime
    until: datetime
    is_released: bool = False


class TableLease:
    """One process's side of a lease. Two holders at once there are none; nobody waits in here.

    `name` is the table's name without its generation, `what` what people call the lease. Methods raise
    what the store raises. For one thread; its own thread renews it from `take` to `give_back`.
    """

    def __init__(
        self, store: Store, name: str, what: str, *, lease_seconds: float, cluster: str | None = None
    ) -> None:
        self._store = store
        self._name = name
        self._what = what
        self._where = on_cluster(cluster)
        self._lease_seconds = lease_seconds
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self._token = secrets.token_hex(8)
        self._since: datetime | None = None
        self._valid_until = 0.0
        self._is_lost = False
        self._stop = threading.Event()
        self._renewer: threading.Thread | None = None
        self.generation = 0
        """The generation that we hold or held last; grows with every holder. 0 before the first."""
        self.other: Lease | None = None
        """Who held it when `take` last failed; None if it was lost in a race."""

    @property
    def is_held(self) -> bool:
        """Whether it is ours for certain now, by our own clock: it goes on while a process is stopped."""
        return self._renewer is not None and not self._is_lost and _clock() < self._valid_until

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken it since; what only ran out may be renewed yet."""
        return self._is_lost

    def take(self, *, at_least: int = 1) -> bool:
        """Take the lease if nobody has it, and begin to renew it.

        `at_least` is the least generation: whoever wrote generations elsewhere keeps them growing, should
        the lease's tables have been dropped.
        """
        leases, now = leases_of(self._store, self._name)
        self.other = _live(leases, now)
        if self.other:
            return False
        last = max(leases, default=0)
        generation = max(last + 1, at_least)
        asked_at = _clock()
        lease = self._lease(now, since=now)
        try:
            self._store.command(
                f"CREATE TABLE {self._name}_{generation}{self._where} (nothing UInt8) "
                f"ENGINE = MergeTree ORDER BY tuple() COMMENT {_quoted(lease)}"
            )
        except StoreQueryError as error:
            if error.code != _TABLE_EXISTS:
                raise
            return False
        others, now = leases_of(self._store, self._name)
        others.pop(generation, None)
        if max(others, default=0) > generation or _live(others, now):
            # We slept between looking and creating: others have come and gone, or the holder was late.
            self._drop(generation)
            return False
        if last and not leases[last].is_released:
            _log.warning("took %s over from %s, whose lease ran out", self._what, leases[last].holder)
        self.generation, self._since = generation, lease.since
        self._valid_until, self._is_lost = asked_at + self._lease_seconds, False
        for older in others:
            self._drop(older)
        self._stop.clear()
        self._renewer = threading.Thread(target=self._renew, name=self._name, daemon=True)
        self._renewer.start()
        return True

    def check(self) -> None:
        """Raise RetryError if the lease is no longer ours: another process may be at work."""
        if not self.is_held:
            raise RetryError(
                f"store {self._store.where}: {self._what} of database {self._store.database} ran out "
                f"after {self._lease_seconds:g} s without being renewed"
            )

    def give_back(self) -> None:
        """End renewing and let the next one have it at once. Does nothing if it is not ours.

        A store that is away is logged: the lease runs out by itself.
        """
        if self._renewer is None:
            return
        self._stop.set()
        self._renewer.join()
        self._renewer = None
        if self._is_lost:
            return
        try:
            self._write(self._store, is_released=True)
        except (RetryError, FatalError) as problem:
            # What was done under the lease is done. Others wait for the rest of it.
            _log.warning("%s was not given back, it runs out by itself: %s", self._what, problem)

    def _renew(self) -> None:
        """In a thread, with a connection of its own: the first one may be busy with a long statement."""
        store: Store | None = None
        while not self._stop.wait(self._lease_seconds / 3):
            try:
                store = store or self._store.another()
                self._write(store)
                if max(leases_of(store, self._name)[0], default=0) != self.generation:
                    raise FatalError("another process has taken it over")
            except RetryError as error:
                _log.warning("%s was not renewed yet: %s", self._what, error)
            except FatalError as error:
                _log.warning("%s is lost: %s", self._what, error)
                self._is_lost = True
                break
        if store is not None:
            store.close()

    def _write(self, store: Store, *, is_released: bool = False) -> None:
        asked_at = _clock()
        now = _now(store)
        lease = self._lease(now, since=self._since or now, is_released=is_released)
        store.command(
            f"ALTER TABLE {self._name}_{self.generation}{self._where} MODIFY COMMENT {_quoted(lease)}"
        )
        self._valid_until = asked_at + self._lease_seconds

    def _lease(self, now: datetime, *, since: datetime, is_released: bool = False) -> Lease:
        until = now if is_released else now + timedelta(seconds=self._lease_seconds)
        return Lease(self._holder, self._token, since, until, is_released)

    def _drop(self, generation: int) -> None:
        self._store.command(f"DROP TABLE IF EXISTS {self._name}_{generation}{self._where} SYNC")


def leases_of(store: Store, name: str) -> tuple[dict[int, Lease], datetime]:
    """The leases of this name by generation, the last of which counts, and the server's time.

    Raises FatalError if a table has the name of a lease and none in its comment.
    """
    leases: dict[int, Lease] = {}
    rows = rows_if_there(
        store,
        "SELECT name, comment FROM system.tables"
        " WHERE database = {database:String} AND startsWith(name, {prefix:String})",
        {"database": store.database, "prefix": f"{name}_"},
    )
    for table_name, comment in rows:
        number = table_name.removeprefix(f"{name}_")
        if not number.isdecimal():
            continue
        try:
            leases[int(number)] = msgspec.json.decode(comment, type=Lease)
        except msgspec.DecodeError as error:
            raise FatalError(
                f"store {store.where}: table {store.database}.{table_name} has no lease in its comment "
                f"({error}); drop it if no process holds it"
            ) from error
    return leases, _now(store)


def _clock() -> float:
    """Seconds that go on while the process is stopped and, where the system can tell, suspended."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


def _now(store: Store) -> datetime:
    (row,) = store.query("SELECT now64(3, 'UTC')").rows
    now: datetime = row[0]
    return now


def _live(leases: dict[int, Lease], now: datetime) -> Lease | None:
    live = [lease for lease in leases.values() if not lease.is_released and lease.until > now]
    return live[-1] if live else None


def _quoted(lease: Lease) -> str:
    text = msgspec.json.encode(lease).decode().replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
