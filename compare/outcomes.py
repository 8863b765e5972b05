"""What the pipeline hands to the store: compared pairs, other outcomes, delivered ranges."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from compare.result import Comparison
from ingest.pair import ResponsePair
from ingest.records import RawRecord, SourcePosition


class ComparedPair(msgspec.Struct, frozen=True):
    """One row of `pairs` to be, with what its side tables need.

    `attempt_id` is a UUID made when the record was taken up: it joins the side tables.
    """

    attempt_id: str
    pair: ResponsePair
    comparison: Comparison


class OtherOutcome(msgspec.Struct, frozen=True):
    """A delivered record that was skipped, failed or dead-lettered.

    `raw` is kept for dead letters only: the original bytes must survive.
    """

    position: SourcePosition
    kind: Literal["skipped", "failed", "dead_letter"]
    reason: str
    detail: str
    request_id: str
    mirrored_at: datetime
    ingested_at: datetime
    raw: RawRecord | None = None


class DeliveredRange(msgspec.Struct, frozen=True):
    """Offsets [first_offset, end_offset) that Kafka delivered, counted apart from the outcomes.

    It starts at a committed offset, so that a range delivered again after a crash replaces
    its predecessor (same group, topic_id, partition, first_offset). `records` may be less than the
    width: offsets have gaps, and what an older range still counts is not counted again. `lost` are offsets
    in it that Kafka's retention removed before they were read. `version`
    is that of the assignment `epoch`: a later owner's range replaces a former one's, never the other
    way round. 0 stands for the time of writing.
    """

    group: str
    topic: str
    topic_id: str
    partition: int
    first_offset: int
    end_offset: int
    records: int
    version: int = 0
    epoch: int = 0
    lost: int = 0


class Batch(msgspec.Struct, frozen=True):
    """One frozen unit of writing: retried as the same object until it is stored."""

    experiment: str
    pairs: tuple[ComparedPair, ...]
    others: tuple[OtherOutcome, ...]
    ranges: tuple[DeliveredRange, ...]
