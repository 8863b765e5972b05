"""What the pipeline hands to the store: compared pairs, other outcomes, delivered ranges."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from compare.packed_rows import PackedRows
from compare.result import Comparison
from ingest.observation import Observation
from ingest.pair import ResponsePair
from ingest.records import RawRecord, SourcePosition
from ingest.tokens import Tokens


class ComparedPair(msgspec.Struct, frozen=True):
    """One row of `pairs` to be, with what its side tables need.

    `attempt_id` is a UUID made when the pair was compared: it joins the side tables.
    """

    attempt_id: str
    pair: ResponsePair
    comparison: Comparison
    rows: PackedRows | None = None
    """All that is stored of it, None where that is made of the pair when it is written."""

    @classmethod
    def of(cls, pair: ResponsePair, comparison: Comparison) -> ComparedPair:
        """Return a pair that is compared, without what only its rows need where they are made already."""
        rows = comparison.rows
        if rows is None:
            return cls(str(uuid.uuid4()), pair, comparison)
        return cls(rows.attempt_id, without_answers(pair), replace(comparison, rows=None), rows)


def without_answers(pair: ResponsePair) -> ResponsePair:
    """Return the pair without bodies, tokens and texts: with who asked whom, when, and how that went."""
    return replace(
        pair,
        mirrored=replace(pair.mirrored, body={}, production=None),
        reference_body={},
        candidate_body={},
        reference=_without_tokens(pair.reference),
        candidate=_without_tokens(pair.candidate),
        reference_again=None,
        candidate_again=None,
        forced=None,
        forced_again=None,
    )


def _without_tokens(seen: Observation) -> Observation:
    return replace(seen, text="", reasoning="", tool_calls=(), tokens=Tokens())


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
