"""The lock under which one process at a time changes the schema of a database.

ClickHouse has no compare-and-set on rows; CREATE TABLE without IF NOT EXISTS is one, since of two that
try one name one fails. Generation n of the lock is the table `schema_lock_<n>`, and its comment is the
lease: who holds it, since when and until when. Generation n + 1 may be created once lease n was given
back or has run out. A holder writes to its own generation alone, and renews it while it works: one that
was killed holds the others up for the rest of its lease at most. A generation is dropped only when a
later one exists, so a process that slept through several sees that its own is not the last.

Times are the server's, so the clocks of the processes do not matter. A holder that was stopped for
longer than its lease may still run the one statement that it was at: statements are idempotent for that.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import threading
import time
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

import msgspec

from compare.store.client import Store
from compare.store.cluster_ddl import on_cluster
from compare.store.errors import StoreQueryError
from compare.store.live_schema import live_tables
from ingest.errors import FatalError, RetryError

LEASE_SECONDS = 30.0
_POLL_SECONDS = 0.1
_SAY_AGAIN_SECONDS = 60.0
_TABLE_EXISTS = 57
_NAME = re.compile(r"schema_lock_(\d+)")

_log = logging.getLogger(__name__)


class Lease(msgspec.Struct, frozen=True):
    """The comment of a generation's table, as JSON. Times are the server's, UTC."""

    holder: str
    token: str
    since: datetime
    until: datetime
    is_released: bool = False


class MigrationLock:
    """Hold it with `with`: entering waits until no other process has a lease.

    Entering raises RetryError if the store is away, and FatalError if it refuses.
    """

    def __init__(
        self, store: Store, *, cluster: str | None = None, lease_seconds: float = LEASE_SECONDS
    ) -> None:
        self._store = store
        self._where = on_cluster(cluster)
        self._lease_seconds = lease_seconds
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self._token = secrets.token_hex(8)
        self._generation = 0
        self._since: datetime | None = None
        self._valid_until = 0.0
        self._is_lost = False
        self._said_of, self._say_again_at = "", 0.0
        self._stop = threading.Event()
        self._renewer = threading.Thread(target=self._renew, name="migration-lock", daemon=True)

    def __enter__(self) -> Self:
        while not self._try():
            time.sleep(_POLL_SECONDS)
        self._renewer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._renewer.join()
        if self._is_lost:
            return
        try:
            self._write(self._store, is_released=True)
        except (RetryError, FatalError) as problem:
            # What was done under the lock is done. Others wait for the rest of the lease.
            _log.warning("the migration lock was not given back, it runs out by itself: %s", problem)

    def check(self) -> None:
        """Raise RetryError if the lock is no longer held: another process may be at work."""
        if self._is_lost or time.monotonic() > self._valid_until:
            raise RetryError(
                f"store {self._store.where}: the migration lock of database {self._store.database} ran out "
                f"after {self._lease_seconds:g} s without being renewed"
            )

    def _try(self) -> bool:
        """Take the lock if nobody has it."""
        leases, now = leases_of(self._store)
        if live := _live(leases, now):
            self._say(live)
            return False
        last = max(leases, default=0)
        generation = last + 1
        asked_at = time.monotonic()
        lease = self._lease(now, since=now)
        try:
            self._store.command(
                f"CREATE TABLE {_table(generation)}{self._where} (nothing UInt8) "
                f"ENGINE = MergeTree ORDER BY tuple() COMMENT {_quoted(lease)}"
            )
        except StoreQueryError as error:
            if error.code != _TABLE_EXISTS:
                raise
            return False
        others, now = leases_of(self._store)
        others.pop(generation, None)
        if max(others, default=0) > generation or _live(others, now):
            # We slept between looking and creating: others have come and gone, or the holder was late.
            self._drop(generation)
            return False
        if last and not leases[last].is_released:
            _log.warning("took the migration lock over from %s, whose lease ran out", leases[last].holder)
        self._generation, self._since = generation, lease.since
        self._valid_until = asked_at + self._lease_seconds
        for older in others:
            self._drop(older)
        return True

    def _say(self, other: Lease) -> None:
        """Whom we wait for: at once, and again every minute."""
        if self._said_of == other.token and time.monotonic() < self._say_again_at:
            return
        self._said_of, self._say_again_at = other.token, time.monotonic() + _SAY_AGAIN_SECONDS
        _log.warning(
            "database %s is being migrated by %s since %s UTC; waiting for it (if that process is dead, "
            "until %s UTC)",
            self._store.database,
            other.holder,
            f"{other.since:%H:%M:%S}",
            f"{other.until:%H:%M:%S}",
        )

    def _renew(self) -> None:
        """In a thread, with a connection of its own: the first one may be busy with a long statement."""
        store: Store | None = None
        while not self._stop.wait(self._lease_seconds / 3):
            try:
                store = store or self._store.another()
                self._write(store)
                if max(leases_of(store)[0], default=0) != self._generation:
                    raise FatalError("another process has taken it over")
            except RetryError as error:
                _log.warning("the migration lock was not renewed yet: %s", error)
            except FatalError as error:
                _log.warning("the migration lock is lost: %s", error)
                self._is_lost = True
                break
        if store is not None:
            store.close()

    def _write(self, store: Store, *, is_released: bool = False) -> None:
        asked_at = time.monotonic()
        now = _now(store)
        lease = self._lease(now, since=self._since or now, is_released=is_released)
        store.command(f"ALTER TABLE {_table(self._generation)}{self._where} MODIFY COMMENT {_quoted(lease)}")
        self._valid_until = asked_at + self._lease_seconds

    def _lease(self, now: datetime, *, since: datetime, is_released: bool = False) -> Lease:
        until = now if is_released else now + timedelta(seconds=self._lease_seconds)
        return Lease(self._holder, self._token, since, until, is_released)

    def _drop(self, generation: int) -> None:
        self._store.command(f"DROP TABLE IF EXISTS {_table(generation)}{self._where} SYNC")


def leases_of(store: Store) -> tuple[dict[int, Lease], datetime]:
    """The leases by generation, the last of which counts, and the server's time.

    Raises FatalError if a table has the name of a lock and no lease in its comment.
    """
    leases: dict[int, Lease] = {}
    for name, table in live_tables(store).items():
        found = _NAME.fullmatch(name)
        if found is None:
            continue
        try:
            leases[int(found[1])] = msgspec.json.decode(table.comment, type=Lease)
        except msgspec.DecodeError as error:
            raise FatalError(
                f"store {store.where}: table {store.database}.{name} has no lease in its comment ({error}); "
                "drop it if no migration is running"
            ) from error
    return leases, _now(store)


def _now(store: Store) -> datetime:
    (row,) = store.query("SELECT now64(3, 'UTC')").rows
    now: datetime = row[0]
    return now


def _live(leases: dict[int, Lease], now: datetime) -> Lease | None:
    live = [lease for lease in leases.values() if not lease.is_released and lease.until > now]
    return live[-1] if live else None


def _table(generation: int) -> str:
    return f"schema_lock_{generation}"


def _quoted(lease: Lease) -> str:
    text = msgspec.json.encode(lease).decode().replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
