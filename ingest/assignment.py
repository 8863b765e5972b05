"""What happens between being given a partition and reading its first record, and who is told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec


class Prepared(msgspec.Struct, frozen=True):
    """What the store knows of a partition that was just assigned.

    `ranges` are its stored delivered ranges that end above the start, first offset to end;
    `range_version` is the highest version among all of them. `stored` are offsets from the start on,
    ascending, whose outcome is stored. `is_offset_foreign`: the committed offset was made on an earlier topic
    of the same name.
    """

    ranges: Mapping[int, int] = {}
    range_version: int = 0
    stored: tuple[int, ...] = ()
    is_offset_foreign: bool = False


class Preparing(Protocol):
    """A preparation under way; `compare.read_back.Preparation`. No method blocks."""

    def done(self) -> bool:
        """Whether `result` may be asked."""

    def result(self) -> Prepared:
        """What was found. Raises the FatalError that it ended with."""

    def cancel(self) -> None:
        """Nobody waits for it any more: the partition was taken away."""


class Prepares(Protocol):
    """Reads back what is stored of a partition; `compare.read_back.ReadBack`."""

    def prepare(
        self, topic: str, topic_id: str, partition: int, start: int, *, is_committed: bool
    ) -> Preparing:
        """Begin. Never blocks. `is_committed`: `start` is a committed offset, not where the log begins.

        No record of the partition may be handed over before it is done.
        """


class DeliveryLog(Protocol):
    """What the source reports to: `compare.ledger.Ledger`. No method may block."""

    def assign(
        self, topic: str, topic_id: str, partition: int, start: int, prepared: Prepared | None = None
    ) -> int:
        """An assignment begins at offset `start`; returns its epoch."""

    def revoke(self, partition: int) -> None:
        """The assignment ended."""

    def deliver(self, partition: int, epoch: int, offsets: Sequence[int], position: int) -> None:
        """These offsets are handed over, and the consumer stands at `position`."""

    def lose(self, partition: int, epoch: int, first: int, end: int) -> None:
        """Offsets [first, end), which come next, were removed by retention before they were handed over."""

    def to_commit(self) -> dict[int, int]:
        """Offsets that may be committed now, by partition."""

    def committed(self, offsets: dict[int, int]) -> None:
        """The broker confirmed these."""


class NothingStored:
    """A `Prepares` for a source without a store behind it: every preparation is done at once."""

    def prepare(
        self, topic: str, topic_id: str, partition: int, start: int, *, is_committed: bool
    ) -> Preparing:
        """Nothing is known."""
        return _Done()


class _Done:
    def done(self) -> bool:
        return True

    def result(self) -> Prepared:
        return Prepared()

    def cancel(self) -> None:
        return
