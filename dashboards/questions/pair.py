"""One pair and what stands beside it: point reads by key, on the pair's own day."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import msgspec
import pandas as pd

from dashboards.asked import BY_INDEX, Asked, frame


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
_OF_SIDES = f"{KEY} AND (role = 'reference' OR role = 'candidate' AND endpoint_name = {{candidate:String}})"
_ON_DAY = " AND toDate(ingested_at) = {day:Date}"

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
    "topic",
    "request_id",
    "request_hash",
    "mirrored_at",
    "ingested_at",
    "tenant",
    "route",
    "language",
    "kind",
    "mode",
    "changes",
    "served_model",
    "verdict",
    "reasons",
    "probable_cause",
    "severity",
    "candidate_fault_families",
    "reference_fault_families",
    "divergence_position",
    "divergence_reference_token",
    "divergence_candidate_token",
    "divergence_reference_gap_nats",
    "divergence_candidate_gap_nats",
    "is_near_tie",
    "reference_tokens_per_s",
    "candidate_tokens_per_s",
    "unscored",
    "tags",
    "is_redacted",
    "exact_match",
    *SCORES,
)

MAX_SAME = 20
SAME_WITHIN = timedelta(days=7)


def pair(asked: Asked, key: PairKey, columns: tuple[str, ...] = PAIR_COLUMNS) -> pd.DataFrame:
    """The row of one pair, or no row. All hundred columns of `pairs_v1` would take three times as long."""
    chosen = ", ".join(f"`{name}`" for name in columns)
    return frame(asked, f"SELECT {chosen} FROM pairs_v1 WHERE {_OF_CANDIDATE}", key.parameters())


def answers(asked: Asked, key: PairKey, day: date) -> pd.DataFrame:
    """The observations of one pair: the reference's, and this candidate's.

    `day`, here and below, is the pair's day of `ingested_at`: one partition is looked into, not all.
    """
    sql = (
        "SELECT role, endpoint_name, text, reasoning, `tool_calls.name` AS tool_names, "
        "`tool_calls.arguments` AS tool_arguments, finish_reason, prompt_tokens, completion_tokens, "
        "total_ms, first_token_ms, failure_kind, failure_status, failure_message, notes, is_reused, "
        "sent_body "
        f"FROM observations_v1 WHERE {_OF_SIDES}"
    )
    return _of_day(asked, sql, key, day)


def findings(asked: Asked, key: PairKey, day: date) -> pd.DataFrame:
    """The findings of one pair."""
    sql = (
        "SELECT side, family, code, message, is_fault, unit, span_start, span_end, measured, threshold "
        f"FROM findings_v1 WHERE {_OF_CANDIDATE}"
    )
    return _of_day(asked, sql, key, day, "ORDER BY side, is_fault DESC, family, code")


def request(asked: Asked, key: PairKey, day: date) -> pd.DataFrame:
    """The mirrored request: body and production_body (JSON), or no row where it is no longer kept."""
    sql = (
        "SELECT body, production_body FROM requests_v1 WHERE topic_id = {topic_id:String} "
        "AND `partition` = {partition:UInt32} AND `offset` = {offset:Int64}"
    )
    return _of_day(asked, sql, key, day)


def tokens(asked: Asked, key: PairKey, day: date) -> pd.DataFrame:
    """Role and, as lists of one length, token, logprob, ranked, top_token, top_logprob of each side."""
    sql = f"SELECT role, token, logprob, ranked, top_token, top_logprob FROM tokens_v1 WHERE {_OF_SIDES}"
    return _of_day(asked, sql, key, day)


def positions(asked: Asked, key: PairKey, day: date) -> pd.DataFrame:
    """index, kl_lower_nats and both sides' least entropies, as lists, along the common prefix."""
    sql = (
        "SELECT `index`, kl_lower_nats, reference_entropy_lower_nats, candidate_entropy_lower_nats "
        f"FROM positions_v1 WHERE {_OF_CANDIDATE}"
    )
    return _of_day(asked, sql, key, day)


def forced(asked: Asked, key: PairKey, day: date) -> pd.DataFrame:
    """What the candidate makes of the reference's own tokens: lists, and why there are none."""
    sql = (
        "SELECT unscored_reason, token, reference_logprob, candidate_logprob, reference_top1_token, "
        f"candidate_top1_token, kl_lower_nats FROM forced_pairs_v1 WHERE {_OF_CANDIDATE}"
    )
    return _of_day(asked, sql, key, day)


def same_request(asked: Asked, key: PairKey, request_hash: str, day: date) -> pd.DataFrame:
    """Other pairs of the very same request, of any experiment, within SAME_WITHIN of this one's day: newest
    first, at most MAX_SAME.
    """
    return frame(
        asked,
        "SELECT experiment, candidate, mirrored_at, verdict, severity, edit_similarity, kl_forced_mean_nats,"
        " divergence_position, topic_id, `partition`, `offset` FROM pairs_v1"
        " WHERE request_hash = {request_hash:String} AND toDate(ingested_at) >= {first:Date}"
        " AND toDate(ingested_at) <= {last:Date}"
        f" AND NOT ({_OF_CANDIDATE}) ORDER BY mirrored_at DESC, experiment, candidate LIMIT {MAX_SAME}",
        {
            **key.parameters(),
            "request_hash": request_hash,
            "first": day - SAME_WITHIN,
            "last": day + SAME_WITHIN,
        },
        BY_INDEX,
    )


def _of_day(asked: Asked, sql: str, key: PairKey, day: date, order: str = "") -> pd.DataFrame:
    """What stands beside a pair is stored with it, under the same `ingested_at`."""
    return frame(asked, f"{sql}{_ON_DAY} {order}", {**key.parameters(), "day": day})
