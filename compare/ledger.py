"""Which delivered offsets are stored, and therefore how far each partition may be committed.

Pure bookkeeping: no network, and a clock only for the version of ranges. Every method holds one lock
and none of them blocks, so the consumer's thread, the rebalance listener and the event loop may call
it freely.

The life of a range, and why it has three steps. A delivered range is written to the store *before*
its end is committed, and while one is written or committed no other is begun for that partition.
So after a crash at any point the committed offset is either the start or the end of the last range
written: a range that is delivered again replaces its predecessor, and ranges never overlap.

Where they would all the same (somebody set the group back by hand), the assignment is told which
ranges are stored, and counts no record a second time that one of them goes on counting.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from compare.outcomes import DeliveredRange
from ingest.assignment import Prepared


class _Loss(msgspec.Struct, frozen=True):
    """What retention removed below `end`: how many `offsets` that nobody read, and which had been `read`."""

    end: int
    offsets: int
    read: tuple[int, ...]


class _Partition(msgspec.Struct):
    """One assignment of one partition. `waiting` is ascending; `stored` is a subset of it."""

    topic: str
    topic_id: str
    epoch: int
    start: int
    position: int
    waiting: deque[int]
    stored: set[int]
    version: int
    covered: dict[int, int]
    """Stored ranges of former assignments, first offset to end, that no range of this one has replaced."""
    known: tuple[int, ...] = ()
    """Offsets from the start on whose outcome a former owner stored; empty once they are all behind."""
    losses: deque[_Loss] = msgspec.field(default_factory=deque)
    passed: list[int] = []
    """Offsets below the watermark that belong to the range not yet begun."""
    pending: DeliveredRange | None = None
    is_pending_stored: bool = False

    def watermark(self) -> int:
        return self.waiting[0] if self.waiting else self.position

    def advance(self) -> None:
        while self.waiting and self.waiting[0] in self.stored:
            offset = self.waiting.popleft()
            self.stored.remove(offset)
            self.passed.append(offset)

    def count(self) -> tuple[int, int]:
        """Take what was passed into a range from `start`: records that it has to count, and lost offsets."""
        lost = 0
        while self.losses and self.losses[0].end <= self.watermark():
            loss = self.losses.popleft()
            lost += loss.offsets
            # Delivered to a former owner, and stored; only their range or its commit did not come about.
            self.passed += loss.read
        # A range with the same first offset is replaced, so what it counted is counted here.
        self.covered.pop(self.start, None)
        passed, self.passed = self.passed, []
        covered = self.covered.items()
        records = sum(not any(first <= offset < end for first, end in covered) for offset in passed)
        return records, lost


class Ledger:
    """The delivered offsets of one consumer group's topic, by partition and assignment epoch."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._lock = threading.Lock()
        self._epoch = 0
        self._partitions: dict[int, _Partition] = {}

    def assign(
        self, topic: str, topic_id: str, partition: int, start: int, prepared: Prepared | None = None
    ) -> int:
        """Begin an assignment at offset `start`: the committed offset, or where reading begins.

        `prepared` says what is stored of the partition's ranges. Returns the epoch. Whatever was
        outstanding for the partition is forgotten.
        """
        known = prepared or Prepared()
        # Above what is stored even where this host's clock is behind the last owner's.
        version = max(time.time_ns() // 1000, known.range_version + 1)
        with self._lock:
            self._epoch += 1
            self._partitions[partition] = _Partition(
                topic=topic,
                topic_id=topic_id,
                epoch=self._epoch,
                start=start,
                position=start,
                waiting=deque(),
                stored=set(),
                version=version,
                covered={first: end for first, end in known.ranges.items() if end > start},
                known=known.stored,
            )
            return self._epoch

    def revoke(self, partition: int) -> None:
        """End the assignment: outcomes that still arrive for it are dropped."""
        with self._lock:
            self._partitions.pop(partition, None)

    def deliver(self, partition: int, epoch: int, offsets: Sequence[int], position: int) -> None:
        """Record delivered offsets (ascending, gaps allowed) and the consumer's position after them.

        `offsets` may be empty: the position also moves over transaction markers. Raises ValueError
        if an offset is not above the earlier ones: the caller must assign anew when Kafka jumps back.
        """
        with self._lock:
            state = self._partitions.get(partition)
            if state is None or state.epoch != epoch:
                return
            floor = state.position
            for offset in offsets:
                if offset < floor:
                    raise ValueError(f"partition {partition}: offset {offset} delivered after {floor - 1}")
                floor = offset + 1
            state.waiting.extend(offsets)
            state.position = max(position, floor)
            if state.known and state.position > state.known[-1]:
                state.known = ()

    def lose(self, partition: int, epoch: int, first: int, end: int) -> None:
        """Note that retention removed offsets [first, end) at the position before they were delivered.

        What a former owner had read and stored is counted as records, the rest as lost.
        """
        with self._lock:
            state = self._partitions.get(partition)
            if state is None or state.epoch != epoch or end <= first:
                return
            read = tuple(offset for offset in state.known if first <= offset < end)
            seen = sorted([*state.covered.items(), *((offset, offset + 1) for offset in read)])
            state.losses.append(_Loss(end, _uncovered(first, end, seen), read))

    def is_current(self, partition: int, epoch: int) -> bool:
        """Whether this assignment still stands."""
        with self._lock:
            state = self._partitions.get(partition)
            return state is not None and state.epoch == epoch

    def store(self, done: Iterable[tuple[int, int, int]]) -> None:
        """Note that the outcomes of these (partition, epoch, offset) are in the store.

        Those of an assignment that has ended are ignored.
        """
        with self._lock:
            touched = set()
            for partition, epoch, offset in done:
                state = self._partitions.get(partition)
                if state is not None and state.epoch == epoch:
                    state.stored.add(offset)
                    touched.add(partition)
            for partition in touched:
                self._partitions[partition].advance()

    def watermark(self, partition: int) -> int | None:
        """The lowest delivered offset that is not stored, else the consumer's position.

        None if the partition is not assigned.
        """
        with self._lock:
            state = self._partitions.get(partition)
            return None if state is None else state.watermark()

    def outstanding(self) -> int:
        """How many delivered records have no stored outcome yet, over all partitions."""
        with self._lock:
            return sum(len(state.waiting) - len(state.stored) for state in self._partitions.values())

    def take_ranges(self) -> tuple[DeliveredRange, ...]:
        """The ranges to write now: new ones where the watermark moved, and those not yet written."""
        with self._lock:
            ranges = []
            for partition, state in sorted(self._partitions.items()):
                if state.pending is None and state.watermark() > state.start:
                    records, lost = state.count()
                    state.pending = DeliveredRange(
                        group=self._group,
                        topic=state.topic,
                        topic_id=state.topic_id,
                        partition=partition,
                        first_offset=state.start,
                        end_offset=state.watermark(),
                        records=records,
                        version=state.version,
                        epoch=state.epoch,
                        lost=lost,
                    )
                    state.is_pending_stored = False
                if state.pending is not None and not state.is_pending_stored:
                    ranges.append(state.pending)
            return tuple(ranges)

    def ranges_stored(self, ranges: Iterable[DeliveredRange]) -> None:
        """Note that these very ranges are in the store, so that their ends may be committed."""
        with self._lock:
            for delivered in ranges:
                state = self._partitions.get(delivered.partition)
                if state is not None and state.pending is delivered:
                    state.is_pending_stored = True

    def to_commit(self) -> dict[int, int]:
        """Offset to commit for each partition whose range is stored and not yet confirmed."""
        with self._lock:
            return {
                partition: state.pending.end_offset
                for partition, state in self._partitions.items()
                if state.pending is not None and state.is_pending_stored
            }

    def committed(self, offsets: dict[int, int]) -> None:
        """Note that the broker confirmed these offsets by partition."""
        with self._lock:
            for partition, offset in offsets.items():
                state = self._partitions.get(partition)
                if state is None or state.pending is None or state.pending.end_offset != offset:
                    continue
                state.start = offset
                state.pending = None
                state.is_pending_stored = False


def _uncovered(first: int, end: int, ranges: Sequence[tuple[int, int]]) -> int:
    """How many of [first, end) are in none of the ranges, which ascend and may overlap."""
    count, at = 0, first
    for start, stop in ranges:
        count += max(0, min(start, end) - at)
        at = max(at, stop)
    return count + max(0, end - at)
