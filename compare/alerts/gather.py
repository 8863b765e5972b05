"""Gathering the evidence of one alert: everything that describes it, from a bounded sample of its pairs."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import numpy as np
from numpy.typing import NDArray

from compare.alerts.alert import Alert, FamilyCount, Severity
from compare.alerts.change_point import ChangePoint, change_point, classes_of
from compare.alerts.describe import severity_of, utc
from compare.alerts.descriptive import compare_slices, describe_samples
from compare.alerts.effect import Effect, effect_of
from compare.alerts.evidence import Evidence
from compare.alerts.evidence_read import VALUES, Sample, pairs_per_hour, read_families, read_sample
from compare.alerts.metrics import BY_NAME, DIMENSIONS, Kind
from compare.alerts.power import detectable
from compare.alerts.source import ACCOUNTED
from compare.alerts.suspects import served_changes
from compare.alerts.words import evidence_summary
from compare.store.client import Store

POWER_HOURS = 24.0
_FLOOR_DAYS = 7
_SLACK = timedelta(hours=1)
MOST_SLICES = 20
FLOOR_COLUMNS: dict[str, str] = {
    "cosine_similarity": "cosine_similarity",
    "top1_agreement_forced": "top1_agreement_forced_ratio",
    "kl_forced": "kl_forced_mean_nats",
    "latency_ratio": "latency_ratio",
}
"""The metrics whose distance has a noise floor, by their column."""

Floats = NDArray[np.float64]


def gather(store: Store, alert: Alert, now: datetime) -> Evidence:
    """Gather what is known of the alert now. Blocks; raises what the store raises.

    An alert that is resolved is described by the pairs up to its alarm: those since are mostly good again.
    """
    bare = Evidence(
        experiment=alert.experiment,
        candidate=alert.candidate,
        alert_id=alert.alert_id,
        gathered_at=now,
        version=alert.version,
        severity=alert.severity,
        summary=alert.summary,
    )
    if alert.category == "accounting":
        return _accounting(store, alert, bare)
    if alert.metric not in VALUES:
        return bare
    kind = BY_NAME[alert.metric].kind
    until = alert.fired_at if alert.resolved_at is not None else max(now, alert.fired_at) + _SLACK
    sample = read_sample(store, alert, until)
    if not len(sample.values):
        return bare
    start = _start(sample, kind)
    index = sample.before if start is None else start.index
    before, since = sample.values[:index], sample.values[index:]
    if not len(since):
        return bare
    began = utc(int(sample.times_ms[index]))
    effect = effect_of(kind, alert.metric, before, since)
    families, worst = read_families(store, alert, began, until)
    traffic = pairs_per_hour(store, alert, now, POWER_HOURS)
    # A change between two pairs may have come at any time between them.
    first, last = (index, index) if start is None else (start.earliest, start.latest)
    changes = served_changes(
        store, alert, utc(int(sample.taken_ms[max(first - 1, 0)])), utc(int(sample.taken_ms[last]))
    )
    found = msgspec.structs.replace(
        bare,
        severity=_severity(alert, kind, before, since, sample.is_reference_only[index:], effect),
        unit=effect.unit,
        pairs_before=len(before),
        pairs_since=len(since),
        value_before=effect.before,
        value_since=effect.since,
        value_low=effect.low,
        value_high=effect.high,
        effect=effect.effect,
        effect_low=effect.effect_low,
        effect_high=effect.effect_high,
        change_at=began,
        change_earliest_at=None if start is None else utc(int(sample.times_ms[start.earliest])),
        change_latest_at=None if start is None else utc(int(sample.times_ms[start.latest])),
        change_pairs=None if start is None else start.size,
        detectable=None
        if traffic is None
        else detectable(kind, alert.tolerated, alert.threshold, before, traffic * POWER_HOURS),
        detectable_hours=POWER_HOURS,
        pairs_per_hour=traffic or 0.0,
        families=families,
        worst_pairs=worst,
        served_changes=changes,
        tests=describe_samples(kind, before, since),
        slices=compare_slices(kind, before, since, sample.slices)[:MOST_SLICES],
    )
    found = _with_floor(store, alert, found, sample, now)
    return msgspec.structs.replace(found, summary=evidence_summary(alert, found))


def _start(sample: Sample, kind: Kind) -> ChangePoint | None:
    """Since when; None where no pair is known from before, or nothing got worse.

    Traffic that was bad from its first pair on, over a declared tolerance, has no change to find: the most
    likely one may then be a few good pairs at the end.
    """
    if not sample.before or len(sample.values) == sample.before:
        return None
    is_flag = kind in ("regression_rate", "candidate_only_excess")
    values = sample.values
    start = change_point((values + 1).astype(np.int64) if is_flag else classes_of(values))
    rise = float(values[start.index :].mean() - values[: start.index].mean())
    got_worse = rise < 0 if kind == "bounded_mean" else rise > 0
    return start if got_worse else None


def _severity(
    alert: Alert,
    kind: Kind,
    before: Floats,
    since: Floats,
    is_reference_only: NDArray[np.bool_],
    effect: Effect,
) -> Severity:
    """The alert's own, or critical where the evidence says so by now. It never falls."""
    if alert.severity == "critical" or effect.low is None or effect.high is None:
        return alert.severity
    mirror = float(is_reference_only.mean())
    if kind == "rank":
        low, high = _rank_interval(before, since)
        return severity_of(kind, alert.tolerated, low, high, 0.0)
    if kind == "candidate_only_excess":
        # The interval is of the excess itself.
        return severity_of(kind, alert.tolerated, effect.low, effect.high, 0.0)
    return severity_of(kind, alert.tolerated, effect.low, effect.high, mirror)


def _rank_interval(before: Floats, since: Floats) -> tuple[float, float]:
    """The 95 % interval of the mean mid-rank of the values since among those before (Mann and Whitney)."""
    if not len(before):
        return 0.0, 1.0
    ranked = np.sort(before)
    u = np.searchsorted(ranked, since, "left") + np.searchsorted(ranked, since, "right")
    mean = float(u.mean()) / (2.0 * len(before))
    half = 1.96 * ((len(before) + len(since) + 1) / (12.0 * len(before) * len(since))) ** 0.5
    return max(mean - half, 0.0), min(mean + half, 1.0)


def _with_floor(store: Store, alert: Alert, found: Evidence, sample: Sample, now: datetime) -> Evidence:
    """The evidence with the noise floor of its metric and slice.

    A score's floor is the same endpoint asked twice. A rate of faults has none of that kind: its floor is
    how often the reference alone is faulty in the same pairs, the difference that nobody caused.
    """
    column = FLOOR_COLUMNS.get(alert.metric)
    if column is None:
        if alert.metric not in ("regression_rate", "candidate_only_excess"):
            return found
        return msgspec.structs.replace(
            found,
            noise_floor=float(sample.is_reference_only.mean()),
            noise_requests=len(sample.is_reference_only),
        )
    # Heavy (scipy.stats), and of use only when an alert exists.
    from compare import floor

    by = next((name for name in floor.DIMENSIONS if name == alert.dimension), None)
    excesses = floor.read_excess(
        store,
        alert.experiment,
        alert.candidate,
        by=by,
        metrics=[column],
        since=now - timedelta(days=_FLOOR_DAYS),
    )
    mine = [one for one in excesses if alert.dimension == DIMENSIONS[0] or one.slice == alert.slice]
    if not mine:
        return found
    (excess,) = mine
    return msgspec.structs.replace(
        found,
        noise_floor=excess.floor,
        noise_requests=excess.requests,
        excess=excess.excess,
        excess_low=excess.low,
        excess_high=excess.high,
    )


def _accounting(store: Store, alert: Alert, bare: Evidence) -> Evidence:
    """Why records were not compared since the alert began: the reasons, most frequent first."""
    parameters = {
        "experiment": alert.experiment,
        "candidate": alert.candidate,
        "since": f"{alert.started_at.timestamp():.3f}",
    }
    since = (
        " mirrored_at >= {since:DateTime64(3, 'UTC')}"
        " AND ingested_at >= {since:DateTime64(3, 'UTC')} - INTERVAL 8 DAY"
    )
    if alert.metric == "unscored_rate":
        query = (
            "SELECT arrayJoin(if(empty(reasons), ['unscored'], reasons)) AS reason, count() AS pairs"
            " FROM pairs_v1 WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
            f" AND verdict = 'unscored' AND{since}"
        )
    else:
        query = (
            "SELECT toString(reason) AS reason, count() AS pairs FROM outcomes_v1"
            f" WHERE experiment = {{experiment:String}} AND kind = {{kind:String}} AND {ACCOUNTED}"
            f" AND{since}"
        )
        parameters["kind"] = alert.metric.removesuffix("_rate")
    rows = store.query(query + " GROUP BY reason ORDER BY pairs DESC, reason LIMIT 20", parameters).rows
    found = msgspec.structs.replace(
        bare,
        unit="rate",
        pairs_since=alert.pairs_since_start,
        value_since=alert.observed_rate,
        value_low=alert.observed_low,
        value_high=alert.observed_high,
        change_at=alert.started_at,
        families=tuple(FamilyCount(str(reason), int(count)) for reason, count in rows),
    )
    return msgspec.structs.replace(found, summary=evidence_summary(alert, found))
