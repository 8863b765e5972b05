"""What the explorer asks of one pair, of alerts and of the accounting. Values are bound by the server."""

from __future__ import annotations

from datetime import date
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
_ON_DAY = " AND toDate(ingested_at) = {day:Date}"


def accounting(store: Asked, experiment: str) -> pd.DataFrame:
    """One row: consumed, compared, skipped, failed, dead_lettered, unaccounted."""
    return frame(
        store,
        "SELECT sum(consumed) AS consumed, sum(compared) AS compared, sum(skipped) AS skipped, "
        "sum(failed) AS failed, sum(dead_lettered) AS dead_lettered, sum(unaccounted) AS unaccounted "
        "FROM accounting_v1 WHERE experiment = {experiment:String}",
        {"experiment": experiment},
    )


def alerts(store: Asked, experiment: str) -> pd.DataFrame:
    """Alerts of one experiment, newest first."""
    return frame(
        store,
        "SELECT state, severity, metric, slice, summary, fired_at, resolved_at FROM alerts_v1 "
        "WHERE experiment = {experiment:String} ORDER BY fired_at DESC LIMIT 100",
        {"experiment": experiment},
    )


def pair(store: Asked, key: PairKey, columns: tuple[str, ...] = ()) -> pd.DataFrame:
    """The row of one pair, or no row: these columns of `pairs_v1`, or all: a hundred take long."""
    chosen = ", ".join(f"`{name}`" for name in columns) or "*"
    sql = f"SELECT {chosen} FROM pairs_v1 WHERE {KEY} AND candidate = {{candidate:String}}"
    return frame(store, sql, key.parameters())


def answers(store: Asked, key: PairKey, day: date | None = None) -> pd.DataFrame:
    """The observations of one pair: the reference's, and this candidate's.

    `day`, here and below, is the pair's day of `ingested_at`: with it one partition is looked into, not all.
    """
    sql = (
        "SELECT role, endpoint_name, text, reasoning, `tool_calls.name` AS tool_names, "
        "`tool_calls.arguments` AS tool_arguments, finish_reason, completion_tokens, total_ms, "
        f"first_token_ms, failure_kind, failure_message FROM observations_v1 WHERE {KEY} "
        "AND (role = 'reference' OR endpoint_name = {candidate:String})"
    )
    return _of_day(store, sql, key, day, "ORDER BY role DESC")


def findings(store: Asked, key: PairKey, day: date | None = None) -> pd.DataFrame:
    """The findings of one pair."""
    sql = (
        "SELECT side, family, code, message, is_fault, unit, span_start, span_end, measured, threshold "
        f"FROM findings_v1 WHERE {KEY} AND candidate = {{candidate:String}}"
    )
    return _of_day(store, sql, key, day, "ORDER BY side, family, code")


def request_body(store: Asked, key: PairKey, day: date | None = None) -> str:
    """The mirrored request as JSON, or an empty string where it is no longer kept."""
    sql = (
        "SELECT body FROM requests_v1 WHERE topic_id = {topic_id:String} "
        "AND `partition` = {partition:UInt32} AND `offset` = {offset:Int64}"
    )
    found = _of_day(store, sql, key, day)
    return "" if found.empty else str(found["body"].iloc[0])


def positions(store: Asked, key: PairKey, day: date | None = None) -> pd.DataFrame:
    """index, kl_lower_nats and both sides' entropy bounds at each position of the common prefix."""
    sql = (
        "SELECT idx AS position, kl AS kl_lower_nats, reference_entropy AS reference_entropy_lower_nats, "
        "candidate_entropy AS candidate_entropy_lower_nats FROM positions_v1 "
        "ARRAY JOIN `index` AS idx, kl_lower_nats AS kl, reference_entropy_lower_nats AS reference_entropy, "
        "candidate_entropy_lower_nats AS candidate_entropy "
        f"WHERE {KEY} AND candidate = {{candidate:String}}"
    )
    return _of_day(store, sql, key, day, "ORDER BY idx")


def _of_day(store: Asked, sql: str, key: PairKey, day: date | None, order: str = "") -> pd.DataFrame:
    """What stands beside a pair is stored with it, under the same `ingested_at`."""
    if day is None:
        return frame(store, f"{sql} {order}", key.parameters())
    return frame(store, f"{sql}{_ON_DAY} {order}", {**key.parameters(), "day": day})
