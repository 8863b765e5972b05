"""Which stored pairs may be folded now, and in which order: each exactly once, none missed.

**What is settled.** The pipeline writes a delivered range [first, end) only when every record that Kafka
delivered below `end` has its outcome in the store, and commits `end` afterwards (`compare.ledger`). So the
highest stored `end` of a partition is its *watermark*: no pair below it is still on its way, whatever gaps
the offsets have. A pair above it waits, even when it is stored: a slow neighbour with a lower offset may
still come, and folding by arrival would let slow (often faulty) answers choose their place in the order,
which breaks the promise of the e-detectors.

**Exactly once.** Each partition's cursor says: every pair below `next_offset` is folded. A run takes
[next_offset, watermark) and moves `next_offset` past what it folded. The cursor and the detectors are
stored in one insert, so a run that dies leaves the state of the run before it, and is repeated whole.
Row times play no part: a late row is one with a higher offset, or one below a watermark that is not
written yet, and either way it is ahead of the cursor.

**The one way back.** A crash between the write of the last range and its commit delivers that range once
more. Stored pairs are then recognised and skipped, but a record with another outcome the first time
(endpoint away, shed) may become a pair now. The offsets of the last range that hold such an outcome are
kept as `open_offsets`, below the cursor: if a pair appears there it is folded then, once; they are dropped
when a later range shows that the commit went through. An operator who winds a consumer group back by hand
is outside this: what is compared anew below the cursor is stored and shown but moves no detector.

**Order.** (time, topic_id, partition, offset), where time is the running maximum of `mirrored_at` in its
partition: equal to `mirrored_at` where Kafka's times ascend, and never at odds with the offsets where they
do not. A partition that has stored pairs above its watermark is known to be behind and holds the others
back at its own watermark; a partition with nothing above is at rest and holds nobody. One that stays
behind for `HOLD_MS` longer than the newest range (its owner is gone, the topic was made anew) no longer
holds the others; its own pairs wait for its watermark as before.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from compare.alerts.series import FoldedPair

HOLD_MS = 15 * 60 * 1000

PartitionKey = tuple[str, int]
"""(topic_id, partition)."""


class Cursor(msgspec.Struct, frozen=True):
    """How far one partition is folded. `time_ms` is the running maximum of `mirrored_at` so far."""

    topic_id: str
    partition: int
    next_offset: int
    time_ms: int = 0
    hour_offset: int = 0
    """The lowest offset folded in the current hour of the fold clock."""
    open_offsets: tuple[int, ...] = ()

    @property
    def key(self) -> PartitionKey:
        """The partition that it belongs to."""
        return self.topic_id, self.partition


class Feed(msgspec.Struct, frozen=True):
    """One partition's records that are ready, in offset order, and what is known of the rest.

    `pairs` are all stored pairs in the open offsets, and all pairs and other outcomes in [next_offset,
    end_offset). `is_behind` says that more will come below pairs that are already stored. `newest_ms` is
    when its newest range came.
    """

    cursor: Cursor
    pairs: tuple[FoldedPair, ...]
    end_offset: int
    is_behind: bool
    newest_ms: int
    open_offsets: tuple[int, ...] = ()
    """Offsets of the last range with an outcome other than a pair: one may yet appear there."""
    is_cut: bool = False
    """More is settled than was read: the others wait, however old the newest range is."""


OrderKey = tuple[int, str, int, int]


def _ordered(feed: Feed) -> Iterator[tuple[OrderKey, FoldedPair]]:
    time_ms = feed.cursor.time_ms
    for pair in feed.pairs:
        time_ms = max(time_ms, pair.mirrored_ms)
        yield (time_ms, pair.topic_id, pair.partition, pair.offset), pair


def _bound(feed: Feed) -> OrderKey:
    """The least key that a pair still missing in this partition may have."""
    time_ms = max([feed.cursor.time_ms, *(pair.mirrored_ms for pair in feed.pairs)])
    return time_ms, feed.cursor.topic_id, feed.cursor.partition, feed.end_offset


def merge(feeds: Iterable[Feed]) -> tuple[list[tuple[int, FoldedPair]], dict[PartitionKey, Cursor]]:
    """The pairs to fold now as (time in ms, pair), in fold order, and the cursors after them."""
    feeds = list(feeds)
    newest = max((feed.newest_ms for feed in feeds), default=0)
    bounds = [
        _bound(feed)
        for feed in feeds
        if feed.is_cut or (feed.is_behind and feed.newest_ms > newest - HOLD_MS)
    ]
    limit = min(bounds, default=None)
    taken: list[tuple[int, FoldedPair]] = []
    times = {feed.cursor.key: feed.cursor.time_ms for feed in feeds}
    folded: dict[PartitionKey, set[int]] = {feed.cursor.key: set() for feed in feeds}
    ends: dict[PartitionKey, int] = {feed.cursor.key: 0 for feed in feeds}
    held: set[PartitionKey] = set()
    for key, pair in heapq.merge(*(_ordered(feed) for feed in feeds)):
        partition = (pair.topic_id, pair.partition)
        if limit is not None and key >= limit:
            held.add(partition)
            continue
        taken.append((key[0], pair))
        times[partition] = key[0]
        ends[partition] = max(ends[partition], pair.offset + 1)
        if pair.is_pair:
            folded[partition].add(pair.offset)
    cursors = {
        feed.cursor.key: _moved(
            feed,
            folded[feed.cursor.key],
            times[feed.cursor.key],
            ends[feed.cursor.key] if feed.cursor.key in held else feed.end_offset,
        )
        for feed in feeds
    }
    return taken, cursors


def _moved(feed: Feed, folded: set[int], time_ms: int, end_offset: int) -> Cursor:
    """The cursor after folding the pairs at these offsets of its feed.

    `end_offset` is where the settled stretch ends, or what is held back begins.
    """
    cursor = feed.cursor
    end = max(cursor.next_offset, end_offset)
    waiting = {*feed.open_offsets, *(pair.offset for pair in feed.pairs if pair.is_pair)}
    still_open = [offset for offset in cursor.open_offsets if offset in waiting]
    now_open = [offset for offset in feed.open_offsets if cursor.next_offset <= offset < end]
    return msgspec.structs.replace(
        cursor,
        next_offset=end,
        time_ms=time_ms,
        open_offsets=tuple(offset for offset in (*still_open, *now_open) if offset not in folded),
    )


def hour_started(
    cursors: Mapping[PartitionKey, Cursor], first: Mapping[PartitionKey, int]
) -> dict[PartitionKey, Cursor]:
    """The cursors with `hour_offset` moved to the first offset that each partition folds in a new hour.

    `first` names it for the partitions that have one; the others begin at their `next_offset`.
    """
    return {
        key: msgspec.structs.replace(cursor, hour_offset=first.get(key, cursor.next_offset))
        for key, cursor in cursors.items()
    }
