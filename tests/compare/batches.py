"""Batches for the tests of rows and writer, with every optional part filled unless told otherwise."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from compare.outcomes import Batch, ComparedPair, DeliveredRange, OtherOutcome
from compare.position_scores import PositionScore, PositionScores
from compare.result import (
    Comparison,
    Divergence,
    Family,
    Finding,
    Scores,
    Verdict,
    VerdictKind,
)
from ingest.alternative import Alternative
from ingest.observation import Failure, FailureKind, Observation, Timings, ToolCall
from ingest.pair import Forced, Mode, ReplayPlan, ResponsePair
from ingest.records import MirroredRequest, RawRecord, ServedBy, SourcePosition
from ingest.tokens import Token, Tokens

# Yesterday, not a fixed date: the tables drop rows that are older than their TTL.
NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=1)
NEGATIVE_INFINITY = float("-inf")


def position(offset: int, *, topic_id: str = "topic-1", partition: int = 0) -> SourcePosition:
    return SourcePosition("gnomon.mirror", topic_id, partition, offset)


def observation(text: str = "answer", **changes: Any) -> Observation:
    whole = Observation(
        text=text,
        tool_calls=(ToolCall("look_up", '{"a": 1}', "call-1"),),
        tokens=Tokens(
            (
                Token(
                    "an",
                    -0.25,
                    id=11,
                    ranked=2,
                    top=(Alternative("an", -0.25), Alternative("un", NEGATIVE_INFINITY)),
                ),
                Token("swer", NEGATIVE_INFINITY, ranked=0),
            )
        ),
        finish_reason="stop",
        prompt_tokens=7,
        completion_tokens=2,
        timings=Timings(total_ms=120.5, first_token_ms=40.25),
        reported_model="m",
    )
    return msgspec.structs.replace(whole, **changes)


def mirrored(offset: int, **changes: Any) -> MirroredRequest:
    where = changes.pop("position", position(offset))
    whole = MirroredRequest(
        position=where,
        request_id=f"r-{offset}",
        body={"model": "served", "messages": [{"role": "user", "content": "hello"}]},
        request_hash=f"{offset:032x}",
        mirrored_at=NOON - timedelta(seconds=5),
        ingested_at=NOON,
        tenant="t",
        route="extract",
        served_by=ServedBy(quantization="awq-int4"),
        tags={"build": "1841"},
    )
    return msgspec.structs.replace(whole, **changes)


def compared(
    offset: int,
    *,
    experiment: str = "e",
    candidate_name: str = "q4",
    request: MirroredRequest | None = None,
    scores: Scores | None = None,
    findings: tuple[Finding, ...] | None = None,
    **changes: Any,
) -> ComparedPair:
    pair = ResponsePair(
        mirrored=request or mirrored(offset),
        experiment=experiment,
        reference_name="full",
        candidate_name=candidate_name,
        reference_body={"model": "full"},
        candidate_body={"model": candidate_name},
        plan=ReplayPlan(Mode.GREEDY, True, False, True, ("temperature=0",)),
        reference=observation("one"),
        candidate=observation("two"),
        reference_again=observation("one"),
        forced=Forced(
            reference=Tokens([Token("an", -0.25, None, 11, (Alternative("an", -0.25),), 1)]),
            candidate=Tokens([Token("an", -0.5, None, 11, (Alternative("un", -0.5),), 1)]),
        ),
    )
    comparison = Comparison(
        scores=scores
        or Scores({"edit_similarity": 0.5, "kl_forced_mean_nats": 0.125}, {"cosine_similarity": "disabled"}),
        findings=(
            Finding(
                family=Family.REPETITION,
                code="loop",
                side="candidate",
                message="a loop",
                unit="tokens",
                start=3,
                end=9,
                measured=4.0,
                threshold=3.0,
            ),
        )
        if findings is None
        else findings,
        verdict=Verdict(
            VerdictKind.CANDIDATE_WORSE,
            ("candidate repeats",),
            "numeric",
            candidate_only=(Family.REPETITION,),
        ),
        divergence=Divergence(1, "a", "b", 0.5, None, False),
        positions=PositionScores(
            (
                PositionScore(0, 0.01, 0.1, 0.2, 0.3, 0.4, 0.002, 0.003, -0.05, 1.0, "key"),
                PositionScore(1, None, None, None, None, None),
            )
        ),
        forced_positions=PositionScores((PositionScore(0, 0.01, None, None, None, None, role="prose"),)),
        noise=Scores({"edit_similarity": 1.0}),
        tags=("history_faulty",),
    )
    return ComparedPair(str(uuid.uuid4()), msgspec.structs.replace(pair, **changes), comparison)


def failed_observation(kind: FailureKind = FailureKind.HTTP_ERROR) -> Observation:
    return Observation(failure=Failure(kind, "boom", 500))


def other(
    offset: int, kind: Any = "skipped", reason: str = "duplicate", *, topic_id: str = "topic-1"
) -> OtherOutcome:
    where = position(offset, topic_id=topic_id)
    raw = RawRecord(where, 1764417600000, b"key", b"\xff\x00broken", (("h", b"\xfe"),))
    return OtherOutcome(
        where, kind, reason, "why", f"r-{offset}", NOON, NOON, raw if kind == "dead_letter" else None
    )


def delivered(first: int, end: int, records: int, *, topic_id: str = "topic-1") -> DeliveredRange:
    return DeliveredRange("group", "gnomon.mirror", topic_id, 0, first, end, records)


def batch(
    *pairs: ComparedPair,
    others: tuple[OtherOutcome, ...] = (),
    ranges: tuple[DeliveredRange, ...] = (),
    experiment: str = "e",
) -> Batch:
    return Batch(experiment, pairs, others, ranges)
