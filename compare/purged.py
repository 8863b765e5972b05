"""Positions that were purged: Kafka still has their records, and may deliver them again."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from compare.store.client import Store
from ingest.outcome import SkipReason
from ingest.records import SourcePosition


class PurgedPositions:
    """A set of source positions, 8 bytes each."""

    def __init__(self, offsets: dict[tuple[str, int], list[int]] | None = None) -> None:
        """`offsets` by topic id and partition."""
        self._offsets = {key: array("Q", sorted(found)) for key, found in (offsets or {}).items()}

    def __contains__(self, position: object) -> bool:
        if not isinstance(position, SourcePosition):
            return False
        offsets = self._offsets.get((position.topic_id, position.partition))
        if offsets is None:
            return False
        at = bisect_left(offsets, position.offset)
        return at < len(offsets) and offsets[at] == position.offset


def read_purged(store: Store) -> PurgedPositions:
    """Those of all experiments: what was purged shall not come back through another one either."""
    rows = store.query(
        "SELECT topic_id, `partition`, groupUniqArray(`offset`) FROM outcomes"
        " WHERE kind = 'skipped' AND reason = {reason:String} GROUP BY topic_id, `partition`",
        {"reason": SkipReason.PURGED.value},
    ).rows
    return PurgedPositions(
        {(str(topic_id), int(partition)): list(found) for topic_id, partition, found in rows}
    )
