"""What the pipeline asks of its parts: the contract of each stage, and whether it may block."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from compare.outcomes import Batch, DeliveredRange
from compare.writer import WriteResult
from ingest.hand_over import Delivered
from ingest.outcome import Skipped
from ingest.pair import ResponsePair
from ingest.records import MirroredRequest, RawRecord


class Source(Protocol):
    """Where records come from; `ingest.kafka_source.KafkaSource`. Never blocks the event loop."""

    async def start(self) -> None:
        """Connect. Raises FatalError if that cannot be done at start-up."""

    async def get(self) -> Delivered:
        """The next record. Raises FatalError if the source gave up, EndOfRecords after `rest`."""
        ...

    async def commit(self) -> bool:
        """Commit what the ledger allows; whether the broker confirmed it."""
        ...

    def rest(self) -> None:
        """Take and give no more records; commits go on."""

    def hold(self, partition: int) -> None:
        """Pause one partition until `release`."""

    def release(self, partition: int) -> None:
        """Read a partition on again that `hold` paused."""

    def reread(self, partitions: Iterable[int]) -> None:
        """Drop what was handed over of these partitions, and read them again from the committed offset."""

    async def close(self) -> None:
        """Leave, within some seconds."""


class Settles(Protocol):
    """What is stored and may be committed; `compare.ledger.Ledger`. Never blocks."""

    def is_current(self, partition: int, epoch: int) -> bool:
        """Whether this assignment still stands."""
        ...

    def store(self, done: Iterable[tuple[int, int, int]]) -> None:
        """Note that the outcomes of these (partition, epoch, offset) are in the store."""

    def take_ranges(self) -> tuple[DeliveredRange, ...]:
        """The delivered ranges to write now."""
        ...

    def ranges_stored(self, ranges: Iterable[DeliveredRange]) -> None:
        """Note that these are in the store."""

    def to_commit(self) -> dict[int, int]:
        """Offset to commit by partition."""
        ...


class Replays(Protocol):
    """Asks the endpoints; `ingest.replay.Replayer`. Never blocks the event loop."""

    async def start(self) -> None:
        """Open the sessions."""

    async def close(self) -> None:
        """Close the sessions."""

    def rest(self) -> None:
        """Wait for no pause and no breaker any longer; `replay` then raises EndpointAwayError."""

    def skip_for(self, mirrored: MirroredRequest) -> Skipped | None:
        """Why no side can be asked, if so."""

    async def replay(self, mirrored: MirroredRequest) -> tuple[ResponsePair, ...]:
        """One pair for each candidate.

        Raises EndpointAwayError if a side is away, BudgetError if its tokens of the day are used up,
        DeadLetterError if the request can never be replayed, FatalError if a side refuses our credentials.
        """
        ...


class Writes(Protocol):
    """Stores a batch; `compare.writer.Writer`. Blocks: the pipeline calls it on a thread of its own."""

    def write(self, batch: Batch) -> WriteResult:
        """Store it, retrying for ever. Raises RetryError only once told to stop, FatalError if refused.

        A row that can never be stored is kept as a dead letter and named in the result.
        """
        ...


class SendsDeadLetters(Protocol):
    """Keeps dead letters; `ingest.dead_letters.DeadLetterTopic`. Blocks, as `Writes` does."""

    def send(self, raw: RawRecord, reason: str, message: str) -> None:
        """Keep one. Raises RetryError if it is not kept."""

    def close(self) -> None:
        """Close the connection."""
