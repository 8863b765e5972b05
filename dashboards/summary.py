"""The figures of one experiment and candidate, from the rollups or from the pairs.

A page over 10 million pairs must answer in about a second, which only the rollups do, some minutes behind.
A series of few pairs is read from `pairs_v1` itself, so that a demo's first minute shows as it happens.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pandas as pd

from compare.result import VerdictKind
from dashboards.asked import Asked, frame

ROLLED_PAIRS = 200_000
"""From so many pairs in the rollups on, a series is read from them: some 50 ms of a processor a raw query."""

MAX_STEPS = 60
"""The most points of a chart over time."""

_OF_SERIES = "experiment = {experiment:String} AND candidate = {candidate:String}"
_VERDICTS = tuple(kind.value for kind in VerdictKind)
_SUMMED = (
    "pairs",
    "regressions",
    "candidate_only_faults",
    "reference_only_faults",
    *(f"{verdict}_pairs" for verdict in _VERDICTS),
    *(f"{score}_{what}" for score in ("kl_forced_mean_nats", "edit_similarity") for what in ("pairs", "sum")),
)


class Series(msgspec.Struct, frozen=True):
    """One experiment and candidate. `until` is the time (UTC) up to which its figures count, None for now."""

    experiment: str
    candidate: str
    until: datetime | None = None

    def parameters(self) -> dict[str, Any]:
        """Query parameters that name it."""
        return {"experiment": self.experiment, "candidate": self.candidate}


class Summary(msgspec.Struct, frozen=True):
    """`totals`: pairs, regressions, candidate_only, reference_only, kl_forced_mean_nats, edit_similarity.
    `verdicts`: verdict, pairs. `faults`: family, side (`candidate only` or `reference only`), pairs. `steps`:
    at (UTC), pairs, regression_rate, kl_forced_mean_nats, edit_similarity, in equal steps of time. `routes`
    and `families` that occur, sorted.
    """

    totals: dict[str, Any]
    verdicts: pd.DataFrame
    faults: pd.DataFrame
    steps: pd.DataFrame
    routes: list[str]
    families: list[str]


def experiments(store: Asked) -> pd.DataFrame:
    """experiment, candidate, pairs, last_at, is_rolled: the one with the newest pair first.

    `last_at` of a series that is read from rollups is the hour of its newest pair.
    """
    rolled = frame(
        store,
        "SELECT experiment, candidate, sum(pairs) AS pairs, max(hour) AS last_at, true AS is_rolled"
        " FROM rollup_sums_v1 WHERE dimension = 'all' GROUP BY experiment, candidate"
        " HAVING pairs >= {least:UInt64}",
        {"least": ROLLED_PAIRS},
    )
    others = frame(
        store,
        "SELECT experiment, candidate, count() AS pairs, max(ingested_at) AS last_at, false AS is_rolled"
        " FROM pairs_v1 WHERE (experiment, candidate) NOT IN"
        " (SELECT arrayJoin(arrayZip({experiments:Array(String)}, {candidates:Array(String)})))"
        " GROUP BY experiment, candidate",
        {"experiments": list(rolled["experiment"]), "candidates": list(rolled["candidate"])},
    )
    both = pd.concat([one for one in (rolled, others) if not one.empty] or [others])
    return both.sort_values(["last_at", "pairs"], ascending=False, ignore_index=True)


def series_of(store: Asked, row: pd.Series) -> Series:
    """The series of one row of `experiments`."""
    series = Series(str(row["experiment"]), str(row["candidate"]))
    if not row["is_rolled"]:
        return series
    # Of the newest hour only: months of minutes would be grouped for one.
    sql = (
        f"SELECT max(minute) AS until FROM rollup_minutes_v1 WHERE {_OF_SERIES} AND kind = 'compared'"
        " AND minute >= {hour:DateTime('UTC')}"
    )
    until = frame(store, sql, {**series.parameters(), "hour": row["last_at"]})["until"].iloc[0]
    return msgspec.structs.replace(series, until=until)


def summary(store: Asked, series: Series) -> Summary:
    """Every figure of the series."""
    return _of_pairs(store, series) if series.until is None else _of_rollups(store, series)


def _of_rollups(store: Asked, series: Series) -> Summary:
    summed = ", ".join(f"sum({name}) AS {name}" for name in _SUMMED)
    # One query of the hours and of the slices: planning one takes longer than reading what both need.
    both = frame(
        store,
        f"SELECT dimension, value, if(dimension = 'all', hour, toDateTime(0, 'UTC')) AS at, {summed}"
        f" FROM rollup_sums_v1 WHERE {_OF_SERIES} AND dimension IN ('all', 'route', 'candidate_family',"
        " 'reference_family', 'candidate_only_family', 'reference_only_family')"
        " GROUP BY dimension, value, at ORDER BY dimension, value, at",
        series.parameters(),
    )
    is_hour = both["dimension"] == "all"
    hours = both[is_hour].rename(columns={"at": "hour"})
    slices = both[~is_hour]
    verdicts = pd.DataFrame(
        {"verdict": _VERDICTS, "pairs": [int(hours[f"{verdict}_pairs"].sum()) for verdict in _VERDICTS]}
    )
    is_one_sided = slices["dimension"].str.endswith("_only_family")
    faults = slices[is_one_sided].rename(columns={"value": "family", "dimension": "side"})
    faults["side"] = faults["side"].str.replace("_only_family", " only")
    is_family = slices["dimension"].isin(["candidate_family", "reference_family"])
    return Summary(
        totals={
            "pairs": int(hours["pairs"].sum()),
            "regressions": int(hours["regressions"].sum()),
            "candidate_only": int(hours["candidate_only_faults"].sum()),
            "reference_only": int(hours["reference_only_faults"].sum()),
            "kl_forced_mean_nats": _mean(hours, "kl_forced_mean_nats"),
            "edit_similarity": _mean(hours, "edit_similarity"),
        },
        verdicts=verdicts[verdicts["pairs"] > 0].sort_values("pairs", ascending=False, ignore_index=True),
        faults=faults[["family", "side", "pairs"]].sort_values(["family", "side"], ignore_index=True),
        steps=_steps(hours),
        routes=list(slices[slices["dimension"] == "route"]["value"]),
        families=sorted(set(slices[is_family]["value"])),
    )


def _mean(hours: pd.DataFrame, name: str) -> float | None:
    """The mean over all pairs of these hours that have the score."""
    pairs = int(hours[f"{name}_pairs"].sum())
    return float(hours[f"{name}_sum"].sum()) / pairs if pairs else None


def _steps(hours: pd.DataFrame) -> pd.DataFrame:
    """At most MAX_STEPS steps of whole hours."""
    first, last = hours["hour"].min(), hours["hour"].max()
    span = int((last - first).total_seconds()) // 3600 + 1
    # One more than fits: a step begins at a multiple of its length, not at the first hour.
    step = -(-span // (MAX_STEPS - 1)) if span > MAX_STEPS else 1
    return pd.DataFrame(
        [
            {
                "at": at,
                "pairs": int(some["pairs"].sum()),
                "regression_rate": int(some["regressions"].sum()) / int(some["pairs"].sum()),
                "kl_forced_mean_nats": _mean(some, "kl_forced_mean_nats"),
                "edit_similarity": _mean(some, "edit_similarity"),
            }
            for at, some in hours.groupby(hours["hour"].dt.floor(f"{step}h"))
        ]
    )


def _of_pairs(store: Asked, series: Series) -> Summary:
    where, named = f"FROM pairs_v1 WHERE {_OF_SERIES}", series.parameters()
    totals = frame(
        store,
        "SELECT count() AS pairs, countIf(is_regression) AS regressions,"
        " countIf(is_candidate_only_fault) AS candidate_only,"
        " countIf(is_reference_only_fault) AS reference_only,"
        " avg(kl_forced_mean_nats) AS kl_forced_mean_nats, avg(edit_similarity) AS edit_similarity,"
        " arraySort(groupUniqArray(route)) AS routes, arraySort(groupUniqArrayArray("
        f"arrayConcat(candidate_fault_families, reference_fault_families))) AS families {where}",
        named,
    ).iloc[0]
    sides = " UNION ALL ".join(
        f"SELECT arrayJoin({side}_only_families) AS family, '{side} only' AS side {where}"
        for side in ("candidate", "reference")
    )
    return Summary(
        totals=dict(totals.drop(["routes", "families"])),
        verdicts=frame(
            store, f"SELECT verdict, count() AS pairs {where} GROUP BY verdict ORDER BY pairs DESC", named
        ),
        faults=frame(
            store,
            f"SELECT family, side, count() AS pairs FROM ({sides})"
            " GROUP BY family, side ORDER BY family, side",
            named,
        ),
        # So few steps that four pairs fall into one on average: a demo's minute shows too.
        steps=frame(
            store,
            f"WITH (SELECT (min(mirrored_at), max(mirrored_at), count()) {where}) AS span,"
            f" least({MAX_STEPS}, greatest(1, intDiv(span.3, 4))) AS steps,"
            " greatest(1, intDiv(dateDiff('second', span.1, span.2) + steps, steps)) AS step"
            " SELECT toDateTime(intDiv(toUnixTimestamp(mirrored_at), step) * step, 'UTC') AS at,"
            " count() AS pairs, avg(is_regression) AS regression_rate,"
            " avg(kl_forced_mean_nats) AS kl_forced_mean_nats, avg(edit_similarity) AS edit_similarity"
            f" {where} GROUP BY at ORDER BY at",
            named,
        ),
        routes=list(totals["routes"]),
        families=list(totals["families"]),
    )
