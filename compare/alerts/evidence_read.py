"""What the evidence of a drift alert is computed from: a bounded sample of its slice's pairs, and the worst.

Everything is read from the views. What a pair is worth to a metric is said once, in `VALUES`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from compare.alerts.alert import Alert, FamilyCount, PairPosition
from compare.alerts.metrics import DIMENSIONS
from compare.alerts.source import COUNTED
from compare.pace import pace
from compare.row_values import milliseconds
from compare.store.client import Store

MOST_BEFORE = 4_000
MOST_SINCE = 4_000
"""Pairs of the sample: the last ones before the change, the first ones since."""
LOOK_BACK = timedelta(days=2)
"""How far before the change the sample reaches."""
WORST_PAIRS = 10
_LATE = timedelta(days=8)
"""`mirrored_at` is within 7 days of `ingested_at`, which chooses the days that are read."""

VALUES: dict[str, str] = {
    "regression_rate": "toFloat64(is_regression)",
    "candidate_only_excess": "toFloat64(is_candidate_only_fault) - toFloat64(is_reference_only_fault)",
    "cosine_similarity": "toFloat64(cosine_similarity)",
    "schema_validity": "if(reference_is_schema_valid = 1, toFloat64(candidate_is_schema_valid), NULL)",
    "top1_agreement_forced": "toFloat64(top1_agreement_forced_ratio)",
    "kl_forced": "toFloat64(kl_forced_mean_nats)",
    "latency_ratio": "toFloat64(latency_ratio)",
}
"""The value of a pair for each drift metric, NULL where it is unscored."""
_WORST_FIRST: dict[str, str] = {
    "cosine_similarity": "cosine_similarity",
    "schema_validity": "candidate_is_schema_valid",
    "top1_agreement_forced": "top1_agreement_forced_ratio",
    "kl_forced": "-kl_forced_mean_nats",
    "latency_ratio": "-latency_ratio",
}
_FLAGS = {"regression_rate": "is_regression", "candidate_only_excess": "is_candidate_only_fault"}
"""The pairs that an alert of such a metric is about; the others' are all of the slice."""

Floats = NDArray[np.float64]


class Sample(msgspec.Struct, frozen=True):
    """The slice's pairs around a change, in the order of their times. One entry of each array a pair.

    `slices` holds the values of each dimension but the first. Unix milliseconds: `times_ms` of when a
    request was mirrored, `taken_ms` of when it was taken up, which lags while a backlog is caught up.
    `is_reference_only` marks faults of the reference alone. The first `before` pairs are older than the
    alert's own estimate of its start.
    """

    times_ms: NDArray[np.int64]
    taken_ms: NDArray[np.int64]
    values: Floats
    is_reference_only: NDArray[np.bool_]
    slices: dict[str, list[str]]
    before: int


def read_sample(store: Store, alert: Alert, until: datetime) -> Sample:
    """Read at most 8,000 counted pairs of the alert's slice up to `until`. Raises what the store raises."""
    columns = (
        f"mirrored_at, ingested_at, {VALUES[alert.metric]} AS x, is_reference_only_fault,"
        f" {', '.join(DIMENSIONS[1:])}"
    )
    where, parameters = _slice_of(alert)
    where += f" AND {COUNTED} AND isNotNull(x)"
    parameters |= {
        "oldest": _text(alert.started_at - LOOK_BACK),
        "until": _text(until),
        "ingested": _text(alert.started_at - LOOK_BACK - _LATE),
    }
    rows: list[tuple[Any, ...]] = []
    before = 0
    for when, order, limit in (
        (
            "mirrored_at < {started:DateTime64(3, 'UTC')} AND mirrored_at >= {oldest:DateTime64(3, 'UTC')}",
            "DESC",
            MOST_BEFORE,
        ),
        (
            "mirrored_at >= {started:DateTime64(3, 'UTC')} AND mirrored_at <= {until:DateTime64(3, 'UTC')}",
            "ASC",
            MOST_SINCE,
        ),
    ):
        found = store.query(
            f"SELECT {columns}{where} AND {when} AND ingested_at >= {{ingested:DateTime64(3, 'UTC')}}"
            f" ORDER BY mirrored_at {order}, `partition` {order}, `offset` {order} LIMIT {limit}",
            parameters,
        ).rows
        if order == "DESC":
            found.reverse()
            before = len(found)
        rows += found
    return Sample(
        times_ms=np.array([milliseconds(row[0]) for row in rows], dtype=np.int64),
        taken_ms=np.array([milliseconds(row[1]) for row in rows], dtype=np.int64),
        values=np.array([row[2] for row in rows], dtype=np.float64),
        is_reference_only=np.array([row[3] for row in rows], dtype=np.bool_),
        slices={
            name: [str(row[number]) for row in rows] for number, name in enumerate(DIMENSIONS[1:], start=4)
        },
        before=before,
    )


def read_families(
    store: Store, alert: Alert, since: datetime, until: datetime
) -> tuple[tuple[FamilyCount, ...], tuple[PairPosition, ...]]:
    """Read the fault families that only the candidate shows, and the slice's ten worst pairs, since then.

    An answer that never came has no family: its failure's kind stands in. Worst is the greatest severity
    (docs/metrics.md), then by the alert's own metric.
    """
    where, parameters = _slice_of(alert)
    parameters |= {"since": _text(since), "until": _text(until), "ingested": _text(since - _LATE)}
    where += (
        f" AND {COUNTED} AND mirrored_at BETWEEN {{since:DateTime64(3, 'UTC')}} AND"
        " {until:DateTime64(3, 'UTC')} AND ingested_at >= {ingested:DateTime64(3, 'UTC')}"
    )
    flag = _FLAGS.get(alert.metric)
    families = store.query(
        "SELECT toString(arrayJoin(if(empty(candidate_only_families),"
        " [ifNull(toString(candidate_failure_kind), 'error')],"
        " arrayMap(family -> toString(family), candidate_only_families)))) AS family, count() AS pairs"
        + where
        + f" AND {flag or _FLAGS['candidate_only_excess']}"
        + " GROUP BY family ORDER BY pairs DESC, family LIMIT 20",
        parameters,
    ).rows
    own = _WORST_FIRST.get(alert.metric, "-kl_forced_mean_nats")
    worst = store.query(
        f"SELECT topic_id, `partition`, `offset`, request_id{where}"
        + (f" AND {flag}" if flag else f" AND isNotNull({VALUES[alert.metric]})")
        + f" ORDER BY severity DESC NULLS LAST, candidate_failure_kind IS NULL, {own} ASC NULLS LAST,"
        " cosine_similarity ASC NULLS LAST, edit_similarity ASC NULLS LAST, topic_id, `partition`, `offset`"
        f" LIMIT {WORST_PAIRS}",
        parameters,
    ).rows
    return (
        tuple(FamilyCount(str(family), int(count)) for family, count in families),
        tuple(PairPosition(*row) for row in worst),
    )


def pairs_per_hour(store: Store, alert: Alert, now: datetime, hours: float) -> float | None:
    """Read how many pairs an hour of the slice count; equal requests count once an hour.

    Over the time in which the candidate's pairs were compared within the last `hours`; None where that is too
    little to tell (`compare.pace`).
    """
    where, parameters = _slice_of(alert)
    since = _text(now - timedelta(hours=hours))
    whole = msgspec.structs.replace(alert, dimension=DIMENSIONS[0])
    ((pairs, first_at, last_at),) = store.query(
        f"SELECT count(), min(ingested_at), max(ingested_at){_slice_of(whole)[0]} AND {COUNTED}"
        " AND ingested_at >= {since:DateTime64(3, 'UTC')}",
        {**parameters, "since": since},
    ).rows
    ((count,),) = store.query(
        f"SELECT uniqExact(request_hash, toStartOfHour(mirrored_at)){where} AND {COUNTED}"
        " AND ingested_at >= {since:DateTime64(3, 'UTC')}",
        {**parameters, "since": since},
    ).rows
    of_all = pace(int(pairs), first_at, last_at)
    return None if of_all is None else of_all * int(count) / int(pairs)


def _slice_of(alert: Alert) -> tuple[str, dict[str, Any]]:
    where = " FROM pairs_v1 WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
    parameters: dict[str, Any] = {
        "experiment": alert.experiment,
        "candidate": alert.candidate,
        "started": _text(alert.started_at),
    }
    if alert.dimension != DIMENSIONS[0]:
        # Only the names of columns that we know: the slice's value is bound.
        column = DIMENSIONS[1:][DIMENSIONS[1:].index(alert.dimension)]
        where += f" AND {column} = {{slice:String}}"
        parameters["slice"] = alert.slice
    return where, parameters


def _text(time: datetime) -> str:
    """A time as ClickHouse reads it for DateTime64(3, 'UTC') whatever the session's zone."""
    return f"{time.astimezone(UTC).timestamp():.3f}"
