"""Each score of the candidate beside its noise floor, and the excess over it with an interval.

A noise pair asks one endpoint the same thing twice. Only the requests that were asked twice are used, so
that each difference is taken within one request: e_i = D(reference, candidate) - D(endpoint, the same
endpoint again). The excess over a floor is the mean of e_i with Student's t interval (scipy.stats.t); the
excess over both floors, D(ref, cand) - max(D(ref, ref'), D(cand, cand')), is the lesser of the two, and its
bounds are the lesser of the bounds. Where both floors exist each interval is made at half the error
(Bonferroni), since either may fail.

D grows with the difference: a score where lower is better as it is, one where higher is better with its sign
turned, a shift by its absolute value, a ratio without direction by the absolute value of its logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from scipy.special import stdtrit

from compare.metrics.spec import METRICS, MetricSpec
from compare.store.asked import Asked
from ingest.errors import SettingsError

Dimension = Literal["route", "tenant", "language", "prompt_length", "kind", "served_model"]

DIMENSIONS: tuple[Dimension, ...] = ("route", "tenant", "language", "prompt_length", "kind", "served_model")
"""What a slice may be cut by: columns of `pairs_v1`."""

LEAST_REQUESTS = 2
"""Fewer have no spread, so no interval."""


class Moments(NamedTuple):
    """Of one side's noise pairs: how many, mean D of the candidate, mean D of the floor, spread of e_i."""

    requests: int
    candidate: float
    floor: float
    deviation: float


class Excess(Struct, frozen=True):
    """One metric in one slice, in the metric's own unit; `low` and `high` bound the excess.

    `candidate` and `floor` are mean distances D over the requests that were asked twice. None where there
    are too few of them. `bounded_by` names the floor that the excess is taken over.
    """

    metric: str
    slice: str
    requests: int
    candidate: float
    floor: float
    excess: float
    low: float | None
    high: float | None
    bounded_by: Literal["reference", "candidate"]


def compared_metrics() -> tuple[MetricSpec, ...]:
    """The metrics that compare two answers, so that they have a floor."""
    return tuple(
        spec
        for spec in METRICS
        if not spec.name.startswith(("reference_", "candidate_", "entropy_reference", "entropy_candidate"))
    )


def excess_over(
    spec: MetricSpec,
    slice_name: str,
    reference: Moments | None,
    candidate: Moments | None,
    confidence: float = 0.95,
) -> Excess | None:
    """Return the excess over both floors, None where neither side was asked twice."""
    sides: list[tuple[Literal["reference", "candidate"], Moments]] = []
    if reference is not None and reference.requests:
        sides.append(("reference", reference))
    if candidate is not None and candidate.requests:
        sides.append(("candidate", candidate))
    if not sides:
        return None
    error = (1.0 - confidence) / len(sides)
    bounds = [_interval(spec, moments, error) for _, moments in sides]
    side, least = min(sides, key=lambda item: item[1].candidate - item[1].floor)
    lows, highs = [bound[0] for bound in bounds], [bound[1] for bound in bounds]
    return Excess(
        metric=spec.name,
        slice=slice_name,
        requests=least.requests,
        candidate=least.candidate,
        floor=least.floor,
        excess=least.candidate - least.floor,
        low=_least(lows),
        high=_least(highs),
        bounded_by=side,
    )


def read_excess(
    store: Asked,
    experiment: str,
    candidate: str,
    *,
    by: Dimension | None = None,
    metrics: Sequence[str] = (),
    confidence: float = 0.95,
    since: datetime | None = None,
    mirrored_from: datetime | None = None,
    mirrored_to: datetime | None = None,
    also: tuple[str, Mapping[str, Any]] = ("", {}),
) -> list[Excess]:
    """Read the excess of every metric that has a floor, for the whole traffic or slice by slice.

    `since` leaves out what was taken up before it; `mirrored_from` and `mirrored_to` bound `mirrored_at`,
    half open. `also` is a further condition (` AND ...`) on columns of both views, with its parameters.
    Raises SettingsError for a metric that has no floor.
    """
    known = {spec.name: spec for spec in compared_metrics()}
    unknown = [name for name in metrics if name not in known]
    if unknown:
        raise SettingsError(f"metric {unknown[0]} has no noise floor; those that have: {', '.join(known)}")
    chosen = [known[name] for name in metrics] if metrics else list(known.values())
    found: list[Excess] = []
    parameters: dict[str, Any] = {"experiment": experiment, "candidate": candidate}
    if since is not None:
        parameters["since"] = f"{since.timestamp():.3f}"
    within, values = also
    parameters |= values
    for name, sign, bound in (("mirrored_from", ">=", mirrored_from), ("mirrored_to", "<", mirrored_to)):
        if bound is not None:
            within += f" AND mirrored_at {sign} {{{name}:DateTime64(3, 'UTC')}}"
            parameters[name] = f"{bound.timestamp():.3f}"
    rows = store.query(_query(chosen, by, within, is_bounded=since is not None), parameters).dicts()
    for name in sorted({str(row["slice"]) for row in rows}):
        sides = {row["side"]: row for row in rows if str(row["slice"]) == name}
        for spec in chosen:
            moments = [_moments(sides.get(side), spec.name) for side in ("reference", "candidate")]
            excess = excess_over(spec, name, moments[0], moments[1], confidence)
            if excess is not None:
                found.append(excess)
    return found


def _interval(spec: MetricSpec, moments: Moments, error: float) -> tuple[float | None, float | None]:
    """Return the two bounds of the mean of e_i, each None where there is none."""
    count, mean = moments.requests, moments.candidate - moments.floor
    if count < LEAST_REQUESTS:
        return None, None
    span = None if spec.low is None or spec.high is None else spec.high - spec.low
    if moments.deviation > 0.0:
        half = float(stdtrit(count - 1, 1.0 - error / 2.0)) * moments.deviation / math.sqrt(count)
    elif span is not None:
        # Every e_i is the same; one not seen in n requests has at most this rate (Clopper and Pearson).
        half = (1.0 - (error / 2.0) ** (1.0 / count)) * span
    else:
        # No spread was seen, and nothing bounds what was not seen.
        return None, None
    if span is None:
        return mean - half, mean + half
    # No difference of two values is wider than the metric.
    return max(mean - half, -span), min(mean + half, span)


def _least(bounds: list[float | None]) -> float | None:
    known = [bound for bound in bounds if bound is not None]
    return min(known) if len(known) == len(bounds) else None


def _moments(row: dict[str, Any] | None, metric: str) -> Moments | None:
    if row is None or not row[f"{metric}_requests"]:
        return None
    return Moments(
        int(row[f"{metric}_requests"]),
        float(row[f"{metric}_candidate"]),
        float(row[f"{metric}_floor"]),
        float(row[f"{metric}_deviation"]),
    )


def _distance(spec: MetricSpec, column: str) -> str:
    if spec.direction == "higher is better":
        return f"-toFloat64({column})"
    if spec.direction == "none":
        return f"abs(log({column}))" if spec.unit == "ratio" else f"abs(toFloat64({column}))"
    return f"toFloat64({column})"


def _query(
    metrics: Sequence[MetricSpec], by: Dimension | None, within: str = "", *, is_bounded: bool = False
) -> str:
    aggregates = []
    for spec in metrics:
        name = spec.name
        pair, noise = _distance(spec, f"pairs.{name}"), _distance(spec, f"noise.{name}")
        both = f"isFinite({pair}) AND isFinite({noise})"
        aggregates.append(
            f"countIf({both}) AS {name}_requests,"
            f" ifNull(avgOrNullIf({pair}, {both}), 0) AS {name}_candidate,"
            f" ifNull(avgOrNullIf({noise}, {both}), 0) AS {name}_floor,"
            f" if(countIf({both}) < 2, 0, stddevSampStableIf({pair} - {noise}, {both})) AS {name}_deviation"
        )
    listed = ", ".join(spec.name for spec in metrics)
    keys = "experiment, candidate, topic_id, `partition`, `offset`"
    where = f"WHERE experiment = {{experiment:String}} AND candidate = {{candidate:String}}{within}"
    if is_bounded:
        where += " AND ingested_at >= {since:DateTime64(3, 'UTC')}"
    slice_column = f"toString(pairs.{by})" if by else "''"
    dimension = f", {by}" if by else ""
    return (
        f"SELECT {slice_column} AS slice, noise.side AS side, {', '.join(aggregates)}"
        f" FROM (SELECT {keys}, side, {listed} FROM noise_pairs_v1 {where}) AS noise"
        f" INNER JOIN (SELECT {keys}{dimension}, {listed} FROM pairs_v1 {where}"
        f" AND NOT has(tags, 'history_faulty')) AS pairs"
        f" USING ({keys}) GROUP BY slice, side"
    )
