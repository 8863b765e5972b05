"""What is behind an alert: the fault families, and the worst pairs with their positions."""

from __future__ import annotations

import msgspec

from compare.alerts.alert import Alert, FamilyCount, PairPosition
from compare.alerts.describe import summary
from compare.alerts.source import COUNTED
from compare.store.client import Store

WORST_PAIRS = 5


def with_evidence(store: Store, alert: Alert) -> Alert:
    """The alert with the families on the candidate only and the five worst pairs since it started.

    An answer that never came has no family: its failure's kind stands in. Worst means the largest forced
    KL, else the lowest similarity; a failed answer is worse than any bad one.
    """
    flag = "is_regression" if alert.metric == "regression_rate" else "is_candidate_only_fault"
    where = (
        " FROM pairs_v1 WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
        " AND mirrored_at BETWEEN {started_at:DateTime64(3, 'UTC')} AND {fired_at:DateTime64(3, 'UTC')}"
        f" AND {flag} AND {COUNTED}"
    )
    parameters = {
        "experiment": alert.experiment,
        "candidate": alert.candidate,
        "started_at": _text(alert.started_at.timestamp()),
        "fired_at": _text(alert.fired_at.timestamp()),
    }
    if alert.dimension == "route":
        where += " AND route = {route:String}"
        parameters["route"] = alert.slice
    families = store.query(
        "SELECT toString(arrayJoin(if(empty(candidate_only_families),"
        " [ifNull(toString(candidate_failure_kind), 'error')],"
        " arrayMap(family -> toString(family), candidate_only_families)))) AS family, count() AS pairs"
        + where
        + " GROUP BY family ORDER BY pairs DESC, family",
        parameters,
    ).rows
    worst = store.query(
        "SELECT topic_id, `partition`, `offset`, request_id" + where + " ORDER BY"
        " candidate_failure_kind IS NULL, kl_forced_mean_nats DESC NULLS LAST,"
        " cosine_similarity ASC NULLS LAST, edit_similarity ASC NULLS LAST, topic_id, `partition`, `offset`"
        f" LIMIT {WORST_PAIRS}",
        parameters,
    ).rows
    filled = msgspec.structs.replace(
        alert,
        families=tuple(FamilyCount(family, count) for family, count in families),
        worst_pairs=tuple(PairPosition(*row) for row in worst),
    )
    return msgspec.structs.replace(filled, summary=summary(filled))


def _text(seconds: float) -> str:
    """A time as ClickHouse reads it for DateTime64(3, 'UTC') whatever the session's zone."""
    return f"{seconds:.3f}"
