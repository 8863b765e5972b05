"""Numbers and words of an alert: what was seen since the change, with exact tests.

The tests describe. An alert was already raised by its e-detector when they are computed.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from compare.alerts.alert import Alert, Severity
from compare.alerts.binomial import chance_of_at_least, lower_bound, upper_bound
from compare.alerts.edetector import DetectorSpec, DetectorState
from compare.alerts.series import SeriesKey

CRITICAL_MULTIPLE = 3.0
"""Critical where even the low end of the interval is this many times what is tolerated."""


def utc(milliseconds: int) -> datetime:
    """Unix milliseconds as an aware UTC time."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


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

    Families and worst pairs are filled in by `evidence`.
    """
    lead = judged.leading
    started_ms = at_ms if lead.started_ms is None else lead.started_ms
    low, high = (bound(lead.candidate, lead.pairs, 0.025) for bound in (lower_bound, upper_bound))
    if spec.kind == "regression_rate":
        test_name = "binomial"
        p_value = chance_of_at_least(lead.candidate, lead.pairs, spec.tolerated)
    else:
        # McNemar's exact test; a paired alarm needs candidate-only faults, so the sum is not 0.
        test_name = "mcnemar"
        discordant = lead.candidate + lead.reference
        p_value = chance_of_at_least(lead.candidate, discordant, 0.5)
    reference_rate = lead.reference / lead.pairs
    severity: Severity = (
        "critical" if low - reference_rate >= CRITICAL_MULTIPLE * spec.tolerated else "warning"
    )
    alert = Alert(
        alert_id=alert_id,
        version=1,
        state="firing",
        severity=severity,
        group_key=group_key,
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
        observed_rate=lead.candidate / lead.pairs,
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
    since = alert.started_at.strftime("%Y-%m-%d %H:%M:%S UTC")
    interval = (
        f"{alert.observed_rate:.1%}, 95 % interval {alert.observed_low:.1%} to {alert.observed_high:.1%}"
    )
    counted = f"{alert.candidate_faults} of {alert.pairs_since_start} pairs"
    if alert.metric == "regression_rate":
        seen = f"{counted} regressed since {since} ({interval}); tolerated {alert.tolerated:.2%}"
    else:
        seen = (
            f"only the candidate faulty in {counted} since {since} ({interval}), only the reference in "
            f"{alert.reference_faults}; tolerated excess {alert.tolerated:.2%}"
        )
    faults = ", ".join(f"{one.family} {one.pairs}" for one in alert.families)
    line = f"{where}: {seen}" + (f"; faults: {faults}" if faults else "")
    if alert.resolved_at is None:
        return line
    return f"resolved {alert.resolved_at.strftime('%Y-%m-%d %H:%M:%S UTC')}: {line}"
