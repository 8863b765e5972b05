"""One pair and what stands beside it, read by its key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any

import msgspec
import pandas as pd

from dashboards.asked import Asked, frame


class PairKey(msgspec.Struct, frozen=True):
    """The key of one response pair."""

    experiment: str
    candidate: str
    topic_id: str
    partition: int
    offset: int

    def parameters(self) -> dict[str, Any]:
        """Query parameters by the names that `KEY` uses."""
        return msgspec.structs.asdict(self)


KEY = (
    "experiment = {experiment:String} AND topic_id = {topic_id:String} "
    "AND `partition` = {partition:UInt32} AND `offset` = {offset:Int64}"
)
_OF_CANDIDATE = f"{KEY} AND candidate = {{candidate:String}}"

SCORES = (
    "kl_forced_mean_nats",
    "kl_forced_p99_nats",
    "kl_forced_max_nats",
    "kl_prefix_mean_nats",
    "kl_prefix_max_nats",
    "entropy_reference_lower_nats",
    "entropy_candidate_lower_nats",
    "top1_agreement_prefix_ratio",
    "top1_agreement_forced_ratio",
    "perplexity_forced_ratio",
    "edit_similarity",
    "cosine_similarity",
    "cosine_min_similarity",
    "numbers_differ",
    "keys_differ",
    "refusal_flip",
    "field_agreement",
    "tool_name_agreement",
    "tool_arguments_agreement",
    "length_ratio",
    "latency_ratio",
)
"""Columns of `pairs_v1` that the page lists as scores."""

PAIR_COLUMNS = (
    "reference",
    "request_id",
    "request_hash",
    "mirrored_at",
    "ingested_at",
    "tenant",
    "route",
    "language",
    "mode",
    "verdict",
    "reasons",
    "probable_cause",
    "severity",
    "candidate_fault_families",
    "divergence_position",
    "divergence_reference_token",
    "divergence_candidate_token",
    "is_near_tie",
    "reference_tokens_per_s",
    "candidate_tokens_per_s",
    "unscored",
    "tags",
    "is_redacted",
    "exact_match",
    *SCORES,
)

_ANSWER = (
    "role",
    "endpoint_name",
    "text",
    "reasoning",
    "tool_names",
    "tool_arguments",
    "finish_reason",
    "prompt_tokens",
    "completion_tokens",
    "total_ms",
    "first_token_ms",
    "failure_kind",
    "failure_status",
    "failure_message",
    "notes",
    "is_reused",
    "sent_body",
)
_FINDING = (
    "side",
    "family",
    "code",
    "message",
    "is_fault",
    "unit",
    "span_start",
    "span_end",
    "measured",
    "threshold",
)
_TOKENS = ("role", "token", "logprob", "ranked", "top_token", "top_logprob")
_POSITIONS = ("index", "kl_lower_nats", "reference_entropy_lower_nats", "candidate_entropy_lower_nats")
_FORCED = (
    "unscored_reason",
    "token",
    "reference_logprob",
    "candidate_logprob",
    "reference_top1_token",
    "candidate_top1_token",
    "kl_lower_nats",
)
"""What the tuples of `pair_beside_v1` hold."""

MAX_SAME = 20
SAME_WITHIN = timedelta(days=7)

Values = dict[str, Any]


class Beside(msgspec.Struct, frozen=True):
    """What is stored beside a pair; None or no entry where it is not kept.

    `request`: body and production_body (JSON). `answers` by role: `_ANSWER`. `findings`: `_FINDING`, faults
    first. `tokens` by role: `_TOKENS`, all but the role lists of one length. `positions`: `_POSITIONS` along
    the common prefix, as lists. `forced`: what the candidate makes of the reference's own tokens, `_FORCED`
    as lists, and why there are none.
    """

    request: Values | None
    answers: dict[str, Values]
    findings: list[Values]
    tokens: dict[str, Values]
    positions: Values | None
    forced: Values | None


def pair(asked: Asked, key: PairKey, columns: tuple[str, ...] = PAIR_COLUMNS) -> pd.DataFrame:
    """The row of one pair, or no row. All hundred columns of `pairs_v1` would take three times as long."""
    chosen = ", ".join(f"`{name}`" for name in columns)
    return frame(asked, f"SELECT {chosen} FROM pairs_v1 WHERE {_OF_CANDIDATE}", key.parameters())


def beside(asked: Asked, key: PairKey, day: date) -> Beside:
    """All that the page shows of a pair, in one query: six take twice as long, mostly to plan.

    `day`, here and below, is the pair's day of `ingested_at`: what stands beside it is stored under the same,
    and one partition is looked into, not all.
    """
    sql = (
        "SELECT requests, answers, findings, tokens, positions, forced FROM pair_beside_v1("
        "experiment = {experiment:String}, candidate = {candidate:String}, topic_id = {topic_id:String},"
        " partition = {partition:UInt32}, offset = {offset:Int64}, day = {day:Date})"
    )
    ((requests, answers, finds, tokens, positions, forced),) = asked.query(
        sql, {**key.parameters(), "day": day}
    ).rows
    return Beside(
        request=_first(("body", "production_body"), requests),
        answers=_by_role(_ANSWER, answers),
        findings=_sorted(list(one) for lists in finds for one in zip(*lists, strict=True)),
        tokens=_by_role(_TOKENS, tokens),
        positions=_first(_POSITIONS, positions),
        forced=_first(_FORCED, forced),
    )


def findings(asked: Asked, key: PairKey, day: date) -> list[Values]:
    """The findings of one pair, alone, for a reader who may not see texts."""
    sql = (
        f"SELECT {', '.join(_FINDING)} FROM findings_v1 WHERE {_OF_CANDIDATE}"
        " AND toDate(ingested_at) = {day:Date}"
    )
    return _sorted(asked.query(sql, {**key.parameters(), "day": day}).rows)


def same_request(asked: Asked, key: PairKey, request_hash: str, day: date) -> pd.DataFrame:
    """Other pairs of the very same request, of any experiment, within SAME_WITHIN of this one's day: newest
    first, at most MAX_SAME.
    """
    found = frame(
        asked,
        "SELECT experiment, candidate, mirrored_at, verdict, severity, edit_similarity, kl_forced_mean_nats,"
        " divergence_position, topic_id, `partition`, `offset` FROM pairs_of_request_v1("
        "request_hash = {request_hash:String}, first = {first:Date}, last = {last:Date})"
        f" ORDER BY mirrored_at DESC, experiment, candidate LIMIT {MAX_SAME + 1}",
        {"request_hash": request_hash, "first": day - SAME_WITHIN, "last": day + SAME_WITHIN},
    )
    # Read with this one, which is there: an answer without rows costs as much again, for its columns.
    own = pd.Series(True, index=found.index)
    for name, value in key.parameters().items():
        own &= found[name] == value
    return found[~own].head(MAX_SAME).reset_index(drop=True)


def _first(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Values | None:
    return dict(zip(names, rows[0], strict=True)) if rows else None


def _by_role(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Values]:
    return {str(row[0]): dict(zip(names, row, strict=True)) for row in rows}


def _sorted(rows: Iterable[Sequence[Any]]) -> list[Values]:
    found = [dict(zip(_FINDING, row, strict=True)) for row in rows]
    return sorted(found, key=lambda one: (one["side"], not one["is_fault"], one["family"], one["code"]))
