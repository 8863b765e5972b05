"""The lock under which one process at a time changes the schema of a database: see `table_lease`.

Generation n is the table `schema_lock_<n>`. A holder that was stopped for longer than its lease may still
run the one statement that it was at: statements are idempotent for that.
"""

from __future__ import annotations

import logging
import time
from types import TracebackType
from typing import Self

from compare.store.client import Store
from compare.store.table_lease import Lease, TableLease
from ingest.errors import RetryError

LOCK_NAME = "schema_lock"
LEASE_SECONDS = 30.0
_POLL_SECONDS = 0.1
_SAY_AGAIN_SECONDS = 60.0

_log = logging.getLogger(__name__)


class MigrationLock:
    """Hold it with `with`: entering waits until no other process has a lease.

    Entering raises RetryError if the store is away, and FatalError if it refuses. Whom it waited for may
    have served an embedded folder, and left with it: then it asks once more, which connects anew.
    """

    def __init__(
        self, store: Store, *, cluster: str | None = None, lease_seconds: float = LEASE_SECONDS
    ) -> None:
        self._database = store.database
        self.lease = TableLease(
            store, LOCK_NAME, "the migration lock", cluster=cluster, lease_seconds=lease_seconds
        )
        self._said_of, self._say_again_at = "", 0.0
        self._has_waited = False

    def __enter__(self) -> Self:
        while not self._take():
            time.sleep(_POLL_SECONDS)
        return self

    def _take(self) -> bool:
        try:
            is_ours = self.lease.take()
        except RetryError:
            if not self._has_waited:
                raise
            self._has_waited = False
            return False
        self._has_waited = not is_ours
        if not is_ours and self.lease.other is not None:
            self._say(self.lease.other)
        return is_ours

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lease.give_back()

    def check(self) -> None:
        """Raise RetryError if the lock is no longer held: another process may be at work."""
        self.lease.check()

    def _say(self, other: Lease) -> None:
        """Whom we wait for: at once, and again every minute."""
        if self._said_of == other.token and time.monotonic() < self._say_again_at:
            return
        self._said_of, self._say_again_at = other.token, time.monotonic() + _SAY_AGAIN_SECONDS
        _log.warning(
            "database %s is being migrated by %s since %s UTC; waiting for it (if that process is dead, "
            "until %s UTC)",
            self._database,
            other.holder,
            f"{other.since:%H:%M:%S}",
            f"{other.until:%H:%M:%S}",
        )
