"""The figures of one experiment and candidate, from the rollups or from the pairs.

A page over 10 million pairs must answer in about a second, which only the rollups do, some minutes behind.
A series of few pairs is read from `pairs_v1` itself, so that a demo's first minute shows as it happens. Both
give the same sums by steps of time, and all figures are made from these.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pandas as pd

from compare.reprocess.experiment import group_of
from compare.result import VerdictKind
from compare.rollups.columns import COUNTS
from dashboards.asked import Asked, frame, hours_between, seconds
from ingest.decode import CLOCK_TOLERANCE

ROLLED_PAIRS = 200_000
"""From so many pairs in the rollups on, a series is read from them: some 50 ms of a processor a raw query."""

MAX_STEPS = 60
"""The most points of a chart over time."""

SCORES = (
    "kl_forced_mean_nats",
    "edit_similarity",
    "cosine_similarity",
    "reference_total_ms",
    "candidate_total_ms",
)
"""Columns of `pairs_v1` whose mean is shown, over the pairs that have it."""

QUANTILES = {
    "kl_forced_mean_nats_p99": ("kl_forced_mean_nats", 0.99),
    "edit_similarity_p1": ("edit_similarity", 0.01),
    **{
        f"{side}_total_ms_p{level}": (f"{side}_total_ms", level / 100)
        for side in ("reference", "candidate")
        for level in (50, 95)
    },
}
"""Name to the score and the level; the names are those of the rollups."""

_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_OF_SERIES = "experiment = {experiment:String} AND candidate = {candidate:String}"
_VERDICTS = tuple(kind.value for kind in VerdictKind)
_COUNTED = (
    "pairs",
    "regressions",
    "candidate_only_faults",
    "reference_only_faults",
    "schema_pairs",
    "schema_regressions",
    *(f"{verdict}_pairs" for verdict in _VERDICTS),
)
SUMMED = (*_COUNTED, *(f"{score}_{what}" for score in SCORES for what in ("pairs", "sum")))


class Series(msgspec.Struct, frozen=True):
    """One experiment and candidate. `until` is the time (UTC) up to which its figures count, None for now."""

    experiment: str
    candidate: str
    until: datetime | None = None

    def parameters(self) -> dict[str, Any]:
        """Query parameters that name it."""
        return {"experiment": self.experiment, "candidate": self.candidate}


class Summary(msgspec.Struct, frozen=True):
    """`totals`: pairs, regressions, candidate_only_faults, reference_only_faults, schema_pairs (the reference
    fits its schema, and the candidate's answer was checked too), schema_regressions (the candidate's does not
    fit), and for each score its mean, None if no pair has it, and `<score>_pairs`.
    `verdicts`: verdict, pairs. `faults`: family, side (`candidate only` or `reference only`), pairs. `steps`:
    at (UTC), the same columns as `totals`, `regression_rate` and `schema_lost_rate`, in equal steps of time.
    """

    totals: dict[str, Any]
    verdicts: pd.DataFrame
    faults: pd.DataFrame
    steps: pd.DataFrame


def experiments(asked: Asked) -> list[dict[str, Any]]:
    """experiment, candidate, pairs, last_at, is_rolled: the one with the newest pair first, but a replay's
    only if nothing came in the day before it: what production feeds is what one comes to look at.

    `last_at` of a series that is read from rollups is the hour of its newest pair.
    """
    rolled = (
        "FROM rollup_sums_v1 WHERE dimension = 'all' GROUP BY experiment, candidate"
        " HAVING sum(pairs) >= {least:UInt64}"
    )
    # One query: an answer without rows, which the others' would mostly be, takes the store as long as both.
    found = asked.query(
        "SELECT * FROM (SELECT experiment, candidate, sum(pairs) AS counted, max(hour) AS last_at,"
        f" true AS is_rolled {rolled} UNION ALL"
        " SELECT experiment, candidate, count() AS counted, max(ingested_at) AS last_at, false AS is_rolled"
        f" FROM pairs_v1 WHERE (experiment, candidate) NOT IN (SELECT experiment, candidate {rolled})"
        " GROUP BY experiment, candidate) ORDER BY last_at - toIntervalDay(experiment IN"
        " (SELECT experiment FROM delivered_ranges_v1"
        " WHERE startsWith(consumer_group, {replay:String}))) DESC, counted DESC",
        {"least": ROLLED_PAIRS, "replay": group_of("")},
    )
    names = ("experiment", "candidate", "pairs", "last_at", "is_rolled")
    return [dict(zip(names, row, strict=True)) for row in found]


def series_of(asked: Asked, row: Mapping[str, Any]) -> Series:
    """The series of one row of `experiments`."""
    series = Series(row["experiment"], row["candidate"])
    if not row["is_rolled"]:
        return series
    # Of the newest hour only: months of minutes would be grouped for one.
    sql = (
        f"SELECT max(minute) AS until FROM rollup_minutes_v1 WHERE {_OF_SERIES} AND kind = 'compared'"
        " AND minute >= {hour:DateTime('UTC')}"
    )
    ((until,),) = asked.query(sql, {**series.parameters(), "hour": seconds(row["last_at"])})
    return msgspec.structs.replace(series, until=until)


def summary(
    asked: Asked, series: Series, start: datetime | None = None, end: datetime | None = None
) -> Summary:
    """The figures of the pairs mirrored from `start` on and before `end`: from rollups, by whole hours."""
    read = _of_pairs if series.until is None else _of_rollups
    bins, faults = read(asked, series, start, end)
    totals = _figures(_sums(bins))
    verdicts = pd.DataFrame(
        {"verdict": _VERDICTS, "pairs": [int(totals[f"{verdict}_pairs"]) for verdict in _VERDICTS]}
    )
    return Summary(
        totals=totals,
        verdicts=verdicts[verdicts["pairs"] > 0].sort_values("pairs", ascending=False, ignore_index=True),
        faults=faults,
        steps=steps_of(bins),
    )


def quantiles(
    asked: Asked, series: Series, start: datetime | None = None, end: datetime | None = None
) -> dict[str, float | None]:
    """QUANTILES over the same pairs as `summary`, None where no pair has the score."""
    if series.until is None:
        where, bounds = _within_pairs(start, end)
        columns = ", ".join(
            f"quantileExactOrNull({level})({score}) AS {name}" for name, (score, level) in QUANTILES.items()
        )
        sql = f"SELECT {columns} FROM pairs_v1 WHERE {_OF_SERIES}{where}"
    else:
        # A view with parameters: it merges the states of the range, which no grouping of finished ones could.
        bounds = {
            "start": seconds(start.replace(minute=0, second=0, microsecond=0) if start else _FIRST),
            "end": seconds(end or series.until + timedelta(days=8)),
        }
        sql = (
            f"SELECT {', '.join(QUANTILES)} FROM rollup_range_v1(start = {{start:DateTime('UTC')}},"
            f" end = {{end:DateTime('UTC')}}, dimension = 'all') WHERE {_OF_SERIES}"
        )
    found = frame(asked, sql, {**series.parameters(), **bounds})
    if found.empty:
        return dict.fromkeys(QUANTILES)
    row = found.iloc[0]
    return {name: None if pd.isna(row[name]) else float(row[name]) for name in QUANTILES}


def steps_of(bins: pd.DataFrame) -> pd.DataFrame:
    """At most MAX_STEPS steps of whole hours; bins that are no more than that stay as they are."""
    if bins.empty:
        return pd.DataFrame(columns=["at", *_figures(_sums(bins))])
    at = bins["at"]
    if len(bins) > MAX_STEPS:
        hours = int((at.max() - at.min()).total_seconds()) // 3600 + 1
        # One more than fits: a step begins at a multiple of its length, not at the first hour.
        at = at.dt.floor(f"{-(-hours // (MAX_STEPS - 1))}h")
    steps = bins[list(SUMMED)].astype("float64").groupby(at).sum()
    return pd.DataFrame(
        [
            {"at": step, **_figures(sums)}
            for step, sums in zip(steps.index, steps.to_dict("records"), strict=True)
        ]
    )


def _sums(bins: pd.DataFrame) -> Mapping[Hashable, float]:
    return bins[list(SUMMED)].astype("float64").sum().to_dict()


def _figures(sums: Mapping[Hashable, float]) -> dict[str, Any]:
    """Counts, means and rates of what SUMMED names."""
    made: dict[str, Any] = {name: int(sums[name]) for name in _COUNTED}
    for score in SCORES:
        made[f"{score}_pairs"] = count = int(sums[f"{score}_pairs"])
        made[score] = float(sums[f"{score}_sum"]) / count if count else None
    for name, part, whole in (
        ("regression_rate", "regressions", "pairs"),
        ("schema_lost_rate", "schema_regressions", "schema_pairs"),
    ):
        made[name] = made[part] / made[whole] if made[whole] else None
    return made


def _of_rollups(
    asked: Asked, series: Series, start: datetime | None, end: datetime | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    summed = ", ".join(f"sum({name}) AS {name}" for name in SUMMED)
    within, bounds = hours_between("hour", start, end)
    # One query of the hours and of the slices: planning one takes longer than reading what both need.
    both = frame(
        asked,
        f"SELECT dimension, value, if(dimension = 'all', hour, toDateTime(0, 'UTC')) AS at, {summed}"
        f" FROM rollup_sums_v1 WHERE {_OF_SERIES}{within}"
        " AND dimension IN ('all', 'candidate_only_family', 'reference_only_family')"
        " GROUP BY dimension, value, at ORDER BY dimension, value, at",
        {**series.parameters(), **bounds},
    )
    is_hour = both["dimension"] == "all"
    faults = both[~is_hour].rename(columns={"value": "family", "dimension": "side"})
    faults["side"] = faults["side"].str.replace("_only_family", " only")
    faults = faults[["family", "side", "pairs"]].sort_values(["family", "side"], ignore_index=True)
    return both[is_hour].reset_index(drop=True), faults


def _of_pairs(
    asked: Asked, series: Series, start: datetime | None, end: datetime | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    within, bounds = _within_pairs(start, end)
    where, named = f"FROM pairs_v1 WHERE {_OF_SERIES}{within}", {**series.parameters(), **bounds}
    summed = [f"{COUNTS[name]} AS {name}" for name in _COUNTED]
    for score in SCORES:
        summed += [f"count({score}) AS {score}_pairs", f"ifNull(sum(toFloat64({score})), 0) AS {score}_sum"]
    # So few steps that four pairs fall into one on average: a demo's minute shows too.
    bins = frame(
        asked,
        f"WITH (SELECT (min(mirrored_at), max(mirrored_at), count()) {where}) AS span,"
        f" least({MAX_STEPS}, greatest(1, intDiv(span.3, 4))) AS steps,"
        " greatest(1, intDiv(dateDiff('second', span.1, span.2) + steps, steps)) AS step"
        " SELECT toDateTime(intDiv(toUnixTimestamp(mirrored_at), step) * step, 'UTC') AS at,"
        f" {', '.join(summed)} {where} GROUP BY at ORDER BY at",
        named,
    )
    sides = " UNION ALL ".join(
        f"SELECT arrayJoin({side}_only_families) AS family, '{side} only' AS side {where}"
        for side in ("candidate", "reference")
    )
    faults = frame(
        asked,
        f"SELECT family, side, count() AS pairs FROM ({sides}) GROUP BY family, side ORDER BY family, side",
        named,
    )
    return bins, faults


def _within_pairs(start: datetime | None, end: datetime | None) -> tuple[str, dict[str, Any]]:
    """The condition of the pairs of the range, and its values."""
    sql, bounds = "", dict[str, Any]()
    if start is not None:
        # `mirrored_at` is within the tolerance of `ingested_at`, so no older day need be read.
        sql += " AND mirrored_at >= {start:DateTime64(3, 'UTC')}"
        sql += " AND ingested_at >= {oldest:DateTime64(3, 'UTC')}"
        bounds["start"] = f"{start.timestamp():.3f}"
        bounds["oldest"] = f"{(start - CLOCK_TOLERANCE).timestamp():.3f}"
    if end is not None:
        sql += " AND mirrored_at < {end:DateTime64(3, 'UTC')}"
        bounds["end"] = f"{end.timestamp():.3f}"
    return sql, bounds
