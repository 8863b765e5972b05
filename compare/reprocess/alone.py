"""One process at a time replays into an experiment.

A second one would take the first one's unfinished batches for what a killed run left, and ask the models
for the same answers again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from compare.store.client import Store
from compare.store.table_lease import Lease, TableLease, lease_name
from ingest.errors import FatalError
from ingest.settings import Settings

LEASE_S = 15.0
"""A replay that was killed holds the next one up for this long at most."""
_LOOK_AGAIN_S = 0.2

_log = logging.getLogger(__name__)


@contextmanager
def replaying_alone(store: Store, settings: Settings) -> Iterator[TableLease]:
    """Hold the lease of the experiment's replay meanwhile.

    Waits for the lease of a process that does not renew it, as after a kill. Raises FatalError if another one
    is at work, and what the store raises.
    """
    name = settings.experiment.name
    lease = TableLease(
        store,
        lease_name("replay", name),
        f"the replay of {name}",
        lease_seconds=LEASE_S,
        cluster=settings.store.cluster,
    )
    first: Lease | None = None
    while not lease.take():
        other = lease.other
        if other is not None and first is None:
            first = other
            _log.warning(
                "experiment %s is replayed by %s; waiting whether that process lives, until %s UTC at most",
                name, other.holder, f"{other.until:%H:%M:%S}",
            )  # fmt: skip
        elif other is not None and other != first:
            raise FatalError(
                f"experiment {name} is replayed by {other.holder} since {other.since:%Y-%m-%d %H:%M:%S} UTC: "
                "wait for its end, or stop it and run this again"
            )
        time.sleep(_LOOK_AGAIN_S)
    try:
        yield lease
    finally:
        lease.give_back()


class AloneInserts(msgspec.Struct):
    """The store as a replay's writer sees it: nothing is written without the lease.

    Writes no `requests`: they are there, as they came, and shall not be kept any longer for this.
    """

    store: Store
    lease: TableLease

    def insert_columns(
        self,
        table: str,
        columns: Mapping[str, Sequence[Any]],
        *,
        dedup_token: str | None = None,
        query_id: str | None = None,
    ) -> None:
        """See `Store.insert_columns`. Besides, raises RetryError while the lease is not renewed, and
        FatalError if another process has taken it.
        """
        if self.lease.is_lost:
            raise FatalError("another process has taken this replay over; what it does not store it repeats")
        self.lease.check()
        if table != "requests":
            self.store.insert_columns(table, columns, dedup_token=dedup_token, query_id=query_id)
