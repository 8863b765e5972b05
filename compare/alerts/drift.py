"""What a detector saw in an hour: the drift results that are kept over time and drawn."""

from __future__ import annotations

import msgspec

from compare.alerts.edetector import ONE, PENDING_SHARE, DetectorSpec, DetectorState
from compare.alerts.metrics import Kind, Metric
from compare.alerts.series import HourSum, SeriesKey, Status


class HourResult(msgspec.Struct, frozen=True, kw_only=True):
    """One series in one hour of the fold clock, as it stood at the hour's end or as it stands now.

    `observed` is the mean of x over the hour's `pairs` (of a rank metric the mean rank in the baseline,
    `baseline` then is 0.5), `baseline` the baseline's own mean, `tolerated` what was tested against it.
    `statistic` is the mean of S, `recovery` the mean of W while an alert is open.
    """

    key: SeriesKey
    kind: Kind
    hour_ms: int
    status: Status
    pairs: int
    observed: float
    baseline: float
    tolerated: float
    statistic: float
    threshold: float
    recovery: float | None
    baseline_version: int


def result_of(
    metric: Metric, key: SeriesKey, spec: DetectorSpec, state: DetectorState, hour: HourSum, center: float
) -> HourResult:
    """The result of an hour that holds at least one pair; `center` is the baseline's mean of x."""
    statistic = state.statistic
    status: Status = "running"
    if state.is_firing:
        status = "firing"
    elif statistic >= PENDING_SHARE * spec.threshold:
        status = "pending"
    return HourResult(
        key=key,
        kind=metric.kind,
        hour_ms=hour.hour_ms,
        status=status,
        pairs=hour.pairs,
        observed=hour.sum_x / ONE / hour.pairs,
        baseline=center,
        tolerated=spec.tolerated,
        statistic=statistic,
        threshold=spec.threshold,
        recovery=None if state.recovery is None else state.recovery.statistic,
        baseline_version=spec.baseline_version,
    )
