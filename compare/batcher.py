"""Collects finished records into batches, cut by number, bytes or time. Pure: time is given."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from compare.answer_bytes import answer_bytes
from compare.outcomes import Batch, ComparedPair, OtherOutcome
from compare.trail import Trail
from ingest.hand_over import Delivered, record_bytes


class Completed(msgspec.Struct, frozen=True):
    """One delivered record with its outcome: its pairs, or `other`, or none to write (`is_stored`)."""

    partition: int
    offset: int
    epoch: int
    pairs: tuple[ComparedPair, ...] = ()
    other: OtherOutcome | None = None
    is_stored: bool = False
    """Its outcome was stored before it was delivered this time."""
    trail: Trail | None = None
    size: int = 0
    """Bytes of the record."""
    answer_bytes: int = 0
    """About what its answers hold."""


def completed_of(
    delivered: Delivered,
    trail: Trail,
    *,
    pairs: tuple[ComparedPair, ...] = (),
    other: OtherOutcome | None = None,
    is_stored: bool = False,
) -> Completed:
    """A delivered record with its outcome."""
    position = delivered.record.position
    return Completed(
        partition=position.partition,
        offset=position.offset,
        epoch=delivered.epoch,
        pairs=pairs,
        other=other,
        is_stored=is_stored,
        trail=trail,
        size=record_bytes(delivered.record),
        answer_bytes=answer_bytes(pairs),
    )


class Batcher:
    """Holds finished records until there are `max_records` of them, or `max_seconds` passed.

    Or until the records, or their answers, have `max_bytes`.
    """

    def __init__(self, experiment: str, max_records: int, max_bytes: int, max_seconds: float) -> None:
        self._experiment = experiment
        self._max_records = max_records
        self._max_bytes = max_bytes
        self.size = 0
        """Bytes of the records held."""
        self.answer_bytes = 0
        self._max_seconds = max_seconds
        self._held: list[Completed] = []
        self._since: float | None = None

    def __len__(self) -> int:
        return len(self._held)

    def add(self, completed: Completed, now: float) -> None:
        """Hold one more; `now` is a monotonic time in seconds."""
        if self._since is None:
            self._since = now
        self._held.append(completed)
        self.size += completed.size
        self.answer_bytes += completed.answer_bytes

    def seconds_left(self, now: float) -> float | None:
        """Seconds until the batch must be cut, 0 if it is due; None if nothing is held."""
        if self._since is None:
            return None
        largest = max(self.size, self.answer_bytes)
        if len(self._held) >= self._max_records or largest >= self._max_bytes:
            return 0.0
        return max(0.0, self._since + self._max_seconds - now)

    def cut(self, keep: Callable[[Completed], bool]) -> tuple[Batch, tuple[Completed, ...]]:
        """The batch of all that is held, frozen, and the records that it settles. Then empty.

        What `keep` refuses is dropped: its assignment ended, and it is delivered to the next owner.
        """
        held, self._held, self._since = tuple(filter(keep, self._held)), [], None
        self.size = self.answer_bytes = 0
        batch = Batch(
            experiment=self._experiment,
            pairs=tuple(pair for completed in held for pair in completed.pairs),
            others=tuple(completed.other for completed in held if completed.other is not None),
            ranges=(),
        )
        return batch, held
