"""What the drift page asks: every detector as it is, one detector's hours, and its baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from compare.alerts.metrics import DIMENSIONS, SERIES_FACTOR
from dashboards.asked import Asked, hours_between
from dashboards.questions.summary import Series

MOST_SERIES = 3_000
MOST_HOURS = 24 * 90
OBSERVED_DAYS = 7
"""How much of an open time range is counted as observed: all of it would be every hour that was kept."""
State = dict[str, Any]
"""A row of `states`: a frame of these few columns would take longer than all that is done with it."""
Hours = list[dict[str, Any]]
STATUSES = ("firing", "pending", "running", "needs_baseline", "baseline_too_faulty")
"""In the order in which they are shown."""

_OF_SERIES = "experiment = {experiment:String} AND candidate = {candidate:String}"
_OF_DETECTOR = (
    f"{_OF_SERIES} AND metric = {{metric:String}} AND dimension = {{dimension:String}}"
    " AND slice = {slice:String}"
)


class Detector(msgspec.Struct, frozen=True, order=True):
    """A metric in a slice; `slice` is empty for the whole experiment."""

    metric: str
    dimension: str
    slice: str

    def __str__(self) -> str:
        return f"{self.metric}|{self.dimension}|{self.slice}"


WHOLE = Detector("candidate_only_excess", DIMENSIONS[0], "")
"""Its hours count every pair that moves a drift metric."""


def states(asked: Asked, series: Series, start: datetime | None, end: datetime | None) -> list[State]:
    """Every detector of the series, those nearest to an alarm first.

    The columns of `detectors_v1`, and `observed`, `observed_pairs`, `baseline` over the hours of the range
    (None without any), `share` (S over A M; 1 where the alarm was raised, None before there is a threshold),
    `evidence` (the same as a share of the way on a logarithmic scale) and `way_back` (of a firing one, the
    evidence that it is over, as such a share).
    """
    found = asked.query(
        "SELECT metric, detector AS kind, dimension, slice, status, tolerated, threshold, statistic,"
        " recovery, pairs_folded, candidate_faults, reference_faults, baseline_pairs, baseline_version,"
        f" alert_id, folded_until FROM detectors_v1 WHERE {_OF_SERIES}"
        " ORDER BY status = 'firing' DESC, if(status = 'firing', dimension = 'experiment', 0) DESC,"
        " if(status = 'firing', 1, statistic / threshold) DESC NULLS LAST, pairs_folded DESC, metric,"
        " dimension, slice LIMIT {most:UInt32}",
        {**series.parameters(), "most": MOST_SERIES},
    ).dicts()
    if not found:
        return found
    seen = _observed(asked, series, start, end, max(row["folded_until"] for row in found))
    for row in found:
        observed = seen.get((row["metric"], row["dimension"], row["slice"]), (None, None, None))
        row["observed"], row["observed_pairs"], row["baseline"] = observed
        limit, is_firing = row["threshold"], row["status"] == "firing"
        row["share"] = 1.0 if is_firing else None
        row["evidence"] = row["way_back"] = None
        statistic = limit if is_firing else row["statistic"]
        if limit is not None and statistic is not None:
            row["share"] = statistic / limit
            row["evidence"] = _way(statistic, limit)
            if row["recovery"] is not None:
                # The alarm's own promise is A M, that of its end A.
                row["way_back"] = _way(row["recovery"], limit / SERIES_FACTOR)
    return found


def refused(states: Iterable[State]) -> list[State]:
    """Those of `states` that count (pairs_folded) what lies in a dimension's slices beyond the limit."""
    return [row for row in states if row["status"] == "slices_refused"]


def hours(
    asked: Asked, series: Series, detector: Detector, start: datetime | None, end: datetime | None
) -> Hours:
    """The kept hours of one detector in the range, oldest first: hour_at, status, pairs, observed, baseline,
    tolerated, statistic, threshold, recovery.
    """
    within, bounds = hours_between("hour_at", start, end)
    found = asked.query(
        "SELECT hour_at, status, pairs, observed, baseline, tolerated, statistic, threshold, recovery"
        f" FROM drift_v1 WHERE {_OF_DETECTOR}{within} ORDER BY hour_at DESC LIMIT {{most:UInt32}}",
        {**series.parameters(), **msgspec.structs.asdict(detector), **bounds, "most": MOST_HOURS},
    ).dicts()
    found.reverse()
    return found


def baseline(asked: Asked, series: Series, metric: str, version: int) -> dict[str, Any] | None:
    """from_at, to_at, pairs, mean, bound, swing, chosen_by, note of a metric's baseline, None if unknown."""
    rows = asked.query(
        "SELECT from_at, to_at, pairs, mean, bound, swing, chosen_by, note FROM alert_baselines_v1"
        f" WHERE {_OF_SERIES} AND metric = {{metric:String}} AND version = {{version:UInt32}} LIMIT 1",
        {**series.parameters(), "metric": metric, "version": version},
    ).dicts()
    return rows[0] if rows else None


def began(asked: Asked, series: Series, alert_id: str) -> datetime | None:
    """When the change of an alert began, by its evidence; None if no pair is known from before."""
    rows = asked.query(
        "SELECT ifNull(change_at, started_at) FROM alerts_v1 WHERE experiment = {experiment:String}"
        " AND alert_id = {id:String} AND pairs_before > 0 LIMIT 1",
        {"experiment": series.experiment, "id": alert_id},
    ).rows
    return rows[0][0] if rows else None


def _observed(
    asked: Asked, series: Series, start: datetime | None, end: datetime | None, newest: datetime
) -> dict[tuple[str, str, str], tuple[Any, Any, Any]]:
    """observed, observed_pairs, baseline of each (metric, dimension, slice)."""
    within, bounds = hours_between("hour_at", start or (end or newest) - timedelta(days=OBSERVED_DAYS), end)
    found = asked.query(
        "SELECT metric, dimension, slice, sum(observed * pairs) / sum(pairs) AS observed, sum(pairs) AS"
        " observed_pairs, argMax(baseline, hour_at) AS baseline FROM"
        " (SELECT metric, dimension, slice, hour_at, observed, pairs, baseline FROM drift_v1"
        f" WHERE {_OF_SERIES}{within})"
        " GROUP BY metric, dimension, slice",
        {**series.parameters(), **bounds},
    )
    return {
        (metric, dimension, slice_): (observed, pairs, baseline)
        for metric, dimension, slice_, observed, pairs, baseline in found
    }


def _way(value: float, limit: float) -> float:
    """How far from 1 to the limit, on a logarithmic scale: 0 to 1."""
    if value <= 1.0:
        return 0.0
    return min(math.log(value) / math.log(limit), 1.0) if limit > 1.0 else 1.0
