"""Request ids that the store remembers, so that a duplicate is known as one after a restart too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from compare.store.client import Store
from ingest.records import SourcePosition

SeenId = tuple[str, SourcePosition]

_HORIZONS = (timedelta(hours=1), timedelta(days=1), timedelta(days=7))
"""How far back is looked, one after the other until there are enough ids: days are partitions."""
_SLACK = timedelta(minutes=10)
"""Another member's clock may be behind ours, and its rows come late."""
_CHUNK = 2_000
# As the intake does: what was skipped, failed or dead-lettered may come again.
_IDS = """
SELECT request_id, topic, `partition`, `offset`, min(ingested_at) AS seen_at
FROM pairs
WHERE experiment = {experiment:String} AND topic_id = {topic_id:String}
    AND ingested_at >= {since:DateTime64(3, 'UTC')}
GROUP BY request_id, topic, `partition`, `offset`
ORDER BY seen_at DESC
LIMIT {limit:UInt32}
"""


class RecentIds:
    """Reads the last ids of one experiment and hands them on. Blocks; for one thread.

    Where redaction rules change request ids, what is stored is not what comes again: such ids are
    remembered by the running process only.
    """

    def __init__(
        self,
        store: Store,
        experiment: str,
        learn: Callable[[Sequence[SeenId]], None],
        *,
        limit: int,
    ) -> None:
        """`learn` is given (id, position), the oldest first, at most `limit` of them a time."""
        self._store = store
        self._experiment = experiment
        self._learn = learn
        self._limit = limit
        self._read_at: dict[str, datetime] = {}

    def refresh(self, topic_id: str) -> None:
        """Learn what was stored since the last time, by any member of the group.

        Raises what the store raises.
        """
        now = datetime.now(UTC)
        last = self._read_at.get(topic_id)
        horizons = _HORIZONS if last is None else (now - last + _SLACK,)
        rows: list[tuple[object, ...]] = []
        for horizon in horizons:
            rows = self._store.query(
                _IDS,
                {
                    "experiment": self._experiment,
                    "topic_id": topic_id,
                    "since": now - horizon,
                    "limit": self._limit,
                },
            ).rows
            if len(rows) >= self._limit:
                break
        self._learn(
            [
                (str(request_id), SourcePosition(str(topic), topic_id, int(str(partition)), int(str(offset))))
                for request_id, topic, partition, offset, _ in reversed(rows)
            ]
        )
        self._read_at[topic_id] = now


def on_loop(
    loop: asyncio.AbstractEventLoop, remember: Callable[[str, SourcePosition], None]
) -> Callable[[Sequence[SeenId]], None]:
    """A `learn` that has `remember` called on the loop, some at a time, before any later call of it."""

    def some(seen: Sequence[SeenId]) -> None:
        for request_id, position in seen:
            remember(request_id, position)

    def learn(seen: Sequence[SeenId]) -> None:
        for first in range(0, len(seen), _CHUNK):
            if not loop.is_closed():
                loop.call_soon_threadsafe(some, seen[first : first + _CHUNK])

    return learn
