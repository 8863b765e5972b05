"""Every query of the explorer, on views only. Values are bound by the server, never pasted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pandas as pd

from compare.store.client import Store


class PairFilter(msgspec.Struct, frozen=True):
    """What the table of pairs is narrowed to; an empty tuple means all."""

    experiment: str
    candidate: str
    verdicts: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    request_id: str = ""


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


def frame(store: Store, sql: str, parameters: dict[str, Any] | None = None) -> pd.DataFrame:
    """The rows of one query as a frame whose columns are named as in the query."""
    result = store.query(sql, parameters or {})
    return pd.DataFrame(list(result.rows), columns=list(result.column_names))


def experiments(store: Store) -> pd.DataFrame:
    """Experiment and candidate with the time of the last pair, newest first."""
    return frame(
        store,
        "SELECT experiment, candidate, any(reference) AS reference, count() AS pairs, "
        "max(ingested_at) AS last_at FROM pairs_v1 GROUP BY experiment, candidate ORDER BY last_at DESC",
    )


def accounting(store: Store, experiment: str) -> pd.DataFrame:
    """One row: consumed, compared, skipped, failed, dead_lettered, unaccounted."""
    return frame(
        store,
        "SELECT sum(consumed) AS consumed, sum(compared) AS compared, sum(skipped) AS skipped, "
        "sum(failed) AS failed, sum(dead_lettered) AS dead_lettered, sum(unaccounted) AS unaccounted "
        "FROM accounting_v1 WHERE experiment = {experiment:String}",
        {"experiment": experiment},
    )


def totals(store: Store, experiment: str, candidate: str) -> pd.DataFrame:
    """One row: pairs, regressions, faults on one side only, means of the main scores."""
    return frame(
        store,
        "SELECT count() AS pairs, countIf(is_regression) AS regressions, "
        "countIf(is_candidate_only_fault) AS candidate_only, "
        "countIf(is_reference_only_fault) AS reference_only, "
        "avg(kl_forced_mean_nats) AS kl_forced_mean_nats, avg(edit_similarity) AS edit_similarity, "
        "avg(cosine_similarity) AS cosine_similarity, avg(exact_match) AS exact_match "
        "FROM pairs_v1 WHERE experiment = {experiment:String} AND candidate = {candidate:String}",
        {"experiment": experiment, "candidate": candidate},
    )


def verdicts(store: Store, experiment: str, candidate: str) -> pd.DataFrame:
    """verdict, pairs."""
    return frame(
        store,
        "SELECT verdict, count() AS pairs FROM pairs_v1 "
        "WHERE experiment = {experiment:String} AND candidate = {candidate:String} "
        "GROUP BY verdict ORDER BY pairs DESC",
        {"experiment": experiment, "candidate": candidate},
    )


def faults(store: Store, experiment: str, candidate: str) -> pd.DataFrame:
    """family, side (`candidate only` or `reference only`), pairs."""
    return frame(
        store,
        "SELECT family, side, count() AS pairs FROM ("
        "SELECT arrayJoin(candidate_only_families) AS family, 'candidate only' AS side FROM pairs_v1 "
        "WHERE experiment = {experiment:String} AND candidate = {candidate:String} UNION ALL "
        "SELECT arrayJoin(reference_only_families) AS family, 'reference only' AS side FROM pairs_v1 "
        "WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
        ") GROUP BY family, side ORDER BY family, side",
        {"experiment": experiment, "candidate": candidate},
    )


def over_time(store: Store, experiment: str, candidate: str) -> pd.DataFrame:
    """at, pairs, regression_rate, kl_forced_mean_nats, edit_similarity, in equal steps of time.

    At most 60 steps, and so few that four pairs fall into one on average: a demo's minute and a month of
    traffic both show.
    """
    return frame(
        store,
        "WITH (SELECT (min(mirrored_at), max(mirrored_at), count()) FROM pairs_v1 "
        "WHERE experiment = {experiment:String} AND candidate = {candidate:String}) AS span, "
        "least(60, greatest(1, intDiv(span.3, 4))) AS steps, "
        "greatest(1, intDiv(dateDiff('second', span.1, span.2) + steps, steps)) AS step "
        "SELECT toDateTime(intDiv(toUnixTimestamp(mirrored_at), step) * step, 'UTC') AS at, "
        "count() AS pairs, "
        "avg(is_regression) AS regression_rate, avg(kl_forced_mean_nats) AS kl_forced_mean_nats, "
        "avg(edit_similarity) AS edit_similarity FROM pairs_v1 "
        "WHERE experiment = {experiment:String} AND candidate = {candidate:String} "
        "GROUP BY at ORDER BY at",
        {"experiment": experiment, "candidate": candidate},
    )


def alerts(store: Store, experiment: str) -> pd.DataFrame:
    """Alerts of one experiment, newest first."""
    return frame(
        store,
        "SELECT state, severity, metric, slice, summary, fired_at, resolved_at FROM alerts_v1 "
        "WHERE experiment = {experiment:String} ORDER BY fired_at DESC LIMIT 100",
        {"experiment": experiment},
    )


def choices(
    store: Store, experiment: str, candidate: str
) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Verdicts, routes and fault families that occur, each sorted."""
    found = frame(
        store,
        "SELECT arraySort(groupUniqArray(verdict)) AS verdicts, arraySort(groupUniqArray(route)) AS routes, "
        "arraySort(groupUniqArrayArray(arrayConcat(candidate_fault_families, reference_fault_families))) "
        "AS families FROM pairs_v1 WHERE experiment = {experiment:String} AND candidate = {candidate:String}",
        {"experiment": experiment, "candidate": candidate},
    ).iloc[0]
    return found["verdicts"], found["routes"], found["families"]


def pairs(store: Store, wanted: PairFilter, limit: int = 200) -> pd.DataFrame:
    """Pairs that pass the filter, regressions first, then by severity, at most `limit`."""
    return frame(
        store,
        "SELECT request_id, route, verdict, severity, candidate_only_families AS candidate_only, "
        "reference_only_families AS reference_only, kl_forced_mean_nats, kl_prefix_mean_nats, "
        "edit_similarity, cosine_similarity, divergence_position, reference_total_ms, "
        "candidate_total_ms, mirrored_at, topic_id, `partition`, `offset` FROM pairs_v1 "
        "WHERE experiment = {experiment:String} AND candidate = {candidate:String} "
        "AND (empty({verdicts:Array(String)}) OR has({verdicts:Array(String)}, verdict)) "
        "AND (empty({routes:Array(String)}) OR has({routes:Array(String)}, route)) "
        "AND (empty({families:Array(String)}) OR hasAny({families:Array(String)}, "
        "arrayConcat(candidate_fault_families, reference_fault_families))) "
        "AND ({request_id:String} = '' OR position(request_id, {request_id:String}) > 0) "
        "ORDER BY is_regression DESC, severity DESC NULLS LAST, `offset` LIMIT {limit:UInt32}",
        {
            "experiment": wanted.experiment,
            "candidate": wanted.candidate,
            "verdicts": list(wanted.verdicts),
            "routes": list(wanted.routes),
            "families": list(wanted.families),
            "request_id": wanted.request_id,
            "limit": limit,
        },
    )


def pair(store: Store, key: PairKey) -> pd.DataFrame:
    """The row of one pair, or no row."""
    sql = f"SELECT * FROM pairs_v1 WHERE {KEY} AND candidate = {{candidate:String}}"
    return frame(store, sql, key.parameters())


def answers(store: Store, key: PairKey) -> pd.DataFrame:
    """The observations of one pair: the reference's, and this candidate's."""
    sql = (
        "SELECT role, endpoint_name, text, reasoning, `tool_calls.name` AS tool_names, "
        "`tool_calls.arguments` AS tool_arguments, finish_reason, completion_tokens, total_ms, "
        f"first_token_ms, failure_kind, failure_message FROM observations_v1 WHERE {KEY} "
        "AND (role = 'reference' OR endpoint_name = {candidate:String}) ORDER BY role DESC"
    )
    return frame(store, sql, key.parameters())


def findings(store: Store, key: PairKey) -> pd.DataFrame:
    """The findings of one pair."""
    sql = (
        "SELECT side, family, code, message, is_fault, unit, span_start, span_end, measured, threshold "
        f"FROM findings_v1 WHERE {KEY} AND candidate = {{candidate:String}} ORDER BY side, family, code"
    )
    return frame(store, sql, key.parameters())


def request_body(store: Store, key: PairKey) -> str:
    """The mirrored request as JSON, or an empty string where it is no longer kept."""
    found = frame(
        store,
        "SELECT body FROM requests_v1 WHERE topic_id = {topic_id:String} "
        "AND `partition` = {partition:UInt32} AND `offset` = {offset:Int64}",
        key.parameters(),
    )
    return "" if found.empty else str(found["body"].iloc[0])


def positions(store: Store, key: PairKey) -> pd.DataFrame:
    """index, kl_lower_nats and both sides' entropy bounds at each position of the common prefix."""
    sql = (
        "SELECT idx AS position, kl AS kl_lower_nats, reference_entropy AS reference_entropy_lower_nats, "
        "candidate_entropy AS candidate_entropy_lower_nats FROM positions_v1 "
        "ARRAY JOIN `index` AS idx, kl_lower_nats AS kl, reference_entropy_lower_nats AS reference_entropy, "
        "candidate_entropy_lower_nats AS candidate_entropy "
        f"WHERE {KEY} AND candidate = {{candidate:String}} ORDER BY idx"
    )
    return frame(store, sql, key.parameters())
