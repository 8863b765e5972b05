"""Numbers and words of an alert as its detector knows it: what was seen since the change, with exact tests.

The tests describe. An alert was already raised by its e-detector when they are computed. What the store
knows besides is gathered apart and later (`compare.alerts.gather`).
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

import msgspec

from compare.alerts import words
from compare.alerts.alert import Alert, Severity
from compare.alerts.binomial import chance_of_at_least, lower_bound, upper_bound
from compare.alerts.edetector import Bet, DetectorSpec, DetectorState
from compare.alerts.metrics import BY_NAME, Kind
from compare.alerts.series import SeriesKey

CRITICAL_MULTIPLE = 3.0
"""Critical where even the better end of the interval is this many times what is tolerated."""
_LEAST_TOLERATED = 0.001
"""A tolerance of nothing would make every alert critical."""
_ERROR = 0.025


def utc(milliseconds: int) -> datetime:
    """Unix milliseconds as an aware UTC time."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def severity_of(kind: Kind, tolerated: float, low: float, high: float, reference_rate: float) -> Severity:
    """How urgent a change is whose mean lies between `low` and `high`; see `DetectorSpec` for the kinds.

    A rate, or the candidate's part of an excess, is held against the reference's own `reference_rate` and
    what is tolerated; a bounded mean's shortfall from 1 against the tolerated shortfall. A mean rank is
    critical where it leaves a third of the tolerated room above it.
    """
    if kind == "bounded_mean":
        is_critical = 1.0 - high >= CRITICAL_MULTIPLE * (1.0 - tolerated)
    elif kind == "rank":
        is_critical = CRITICAL_MULTIPLE * (1.0 - low) <= 1.0 - tolerated
    else:
        is_critical = low - reference_rate >= CRITICAL_MULTIPLE * max(tolerated, _LEAST_TOLERATED)
    return "critical" if is_critical else "warning"


def firing_alert(
    *,
    alert_id: str,
    group_key: str,
    experiment: str,
    candidate: str,
    key: SeriesKey,
    spec: DetectorSpec,
    judged: DetectorState,
    at_ms: int,
) -> Alert:
    """The alert of a detector that fires at this pair; `judged` is its state before the cap.

    `observed_*` are the mean of x since the start, with its exact interval for counts (Clopper and Pearson
    1934) and the distribution-free one of Hoeffding 1963 for scores and ranks.
    """
    lead = judged.leading
    started_ms = at_ms if lead.started_ms is None else lead.started_ms
    observed, low, high = _observed(spec.kind, lead)
    test_name, p_value = _test(spec, lead)
    alert = Alert(
        alert_id=alert_id,
        version=1,
        state="firing",
        severity=severity_of(spec.kind, spec.tolerated, low, high, lead.reference / lead.pairs),
        group_key=group_key,
        category=BY_NAME[key.metric].category,
        kind=spec.kind,
        baseline_version=spec.baseline_version,
        experiment=experiment,
        candidate=candidate,
        metric=key.metric,
        dimension=key.dimension,
        slice=key.value,
        started_at=utc(started_ms),
        fired_at=utc(at_ms),
        pairs_folded=judged.pairs,
        pairs_since_start=lead.pairs,
        candidate_faults=lead.candidate,
        reference_faults=lead.reference,
        statistic=judged.statistic,
        threshold=spec.threshold,
        tolerated=spec.tolerated,
        observed_rate=observed,
        observed_low=low,
        observed_high=high,
        test_name=test_name,
        test_p_value=p_value,
    )
    return msgspec.structs.replace(alert, summary=summary(alert))


def resolved_alert(alert: Alert, *, judged: DetectorState, at_ms: int) -> Alert:
    """The next version of a firing alert, whose detector fell quiet at this pair."""
    resolved = msgspec.structs.replace(
        alert,
        version=alert.version + 1,
        state="resolved",
        resolved_at=utc(at_ms),
        pairs_folded=judged.pairs,
        statistic=judged.statistic,
    )
    return msgspec.structs.replace(resolved, summary=summary(resolved))


def summary(alert: Alert) -> str:
    """One line for a person: who, what, since when, how sure, against what."""
    where = f"{alert.experiment}: candidate {alert.candidate}"
    if alert.dimension != "experiment":
        where += f", {alert.dimension} {alert.slice}"
    since = words.at(alert.started_at)
    line = f"{where}: {_seen(alert, since)}"
    if alert.resolved_at is None:
        return line
    return f"resolved {words.at(alert.resolved_at)}: {line}"


def _seen(alert: Alert, since: str) -> str:
    counted = f"{alert.candidate_faults} of {alert.pairs_since_start} pairs"
    bounds = alert.observed_rate, alert.observed_low, alert.observed_high
    if alert.kind in ("bounded_mean", "rank"):
        observed, low, high = (f"{bound:.3f}" for bound in bounds)
        what = alert.metric if alert.kind == "bounded_mean" else f"rank of {alert.metric} in the baseline"
        limit = "at least" if alert.kind == "bounded_mean" else "at most"
        return (
            f"mean {what} {observed} in {alert.pairs_since_start} pairs since {since} (95 % interval {low}"
            f" to {high}); tolerated {limit} {alert.tolerated:.3f}"
        )
    observed, low, high = (f"{bound:.1%}" for bound in bounds)
    interval = f"{observed}, 95 % interval {low} to {high}"
    if alert.metric == "candidate_only_excess":
        return (
            f"only the candidate faulty in {counted} since {since} ({interval}), only the reference in "
            f"{alert.reference_faults}; tolerated excess {alert.tolerated:.2%}"
        )
    if alert.category == "accounting":
        was = alert.metric.removesuffix("_rate")
        counted = f"{alert.candidate_faults} of {alert.pairs_since_start} records {was}"
    else:
        counted += " regressed"
    return f"{counted} since {since} ({interval}); tolerated {alert.tolerated:.2%}"


def _observed(kind: Kind, lead: Bet) -> tuple[float, float, float]:
    """The mean of x since the start of the bet, and its 95 % interval."""
    if kind in ("bounded_mean", "rank"):
        mean = lead.total / lead.pairs
        half = math.sqrt(math.log(2.0 / (2.0 * _ERROR)) / (2.0 * lead.pairs))
        return mean, max(mean - half, 0.0), min(mean + half, 1.0)
    low, high = (bound(lead.candidate, lead.pairs, _ERROR) for bound in (lower_bound, upper_bound))
    return lead.candidate / lead.pairs, low, high


def _test(spec: DetectorSpec, lead: Bet) -> tuple[str, float]:
    """A test of what was seen since the start against what is tolerated: its name and one-sided p-value."""
    if spec.kind in ("bounded_mean", "rank"):
        mean = lead.total / lead.pairs
        off = spec.tolerated - mean if spec.kind == "bounded_mean" else mean - spec.tolerated
        return "hoeffding", math.exp(-2.0 * lead.pairs * max(off, 0.0) ** 2)
    if spec.kind == "candidate_only_excess":
        # McNemar's exact test; a paired alarm needs candidate-only faults, so the sum is not 0.
        discordant = lead.candidate + lead.reference
        return "mcnemar", chance_of_at_least(lead.candidate, discordant, 0.5)
    return "binomial", chance_of_at_least(lead.candidate, lead.pairs, spec.tolerated)
