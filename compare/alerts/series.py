"""Series: a metric in a slice. Which series a pair moves, and the detector that each of them runs."""

from __future__ import annotations

from typing import Literal

import msgspec

from compare.alerts.alert import Alert
from compare.alerts.baseline import Baseline
from compare.alerts.edetector import DetectorSpec, DetectorState, Kind

METRICS: tuple[Kind, ...] = ("regression_rate", "candidate_only_excess")
DIMENSIONS = ("experiment", "route")
SERIES_FACTOR = len(METRICS) * len(DIMENSIONS)
"""M: metrics times slicing dimensions. Each slice moves on its own pairs only, so values cost nothing."""

Status = Literal["running", "firing", "needs_baseline", "baseline_too_faulty"]


class SeriesKey(msgspec.Struct, frozen=True, order=True):
    """A metric in a slice; `value` is the route's name, or empty for the whole experiment."""

    metric: Kind
    dimension: str
    value: str


class FoldedPair(msgspec.Struct, frozen=True):
    """What a detector needs of one stored pair. `mirrored_ms` is Unix milliseconds.

    `is_counted` is False for a pair that may not move any rate: unscored, or production's own answer
    in place of the candidate's.
    """

    topic_id: str
    partition: int
    offset: int
    mirrored_ms: int
    request_hash: str
    route: str
    is_counted: bool
    is_regression: bool
    is_candidate_only_fault: bool
    is_reference_only_fault: bool

    def flags(self, metric: Kind) -> tuple[bool, bool]:
        """The (candidate, reference) flags that this metric counts."""
        if metric == "regression_rate":
            return self.is_regression, False
        return self.is_candidate_only_fault, self.is_reference_only_fault

    def slices(self) -> list[tuple[str, str]]:
        """The (dimension, value) slices that this pair belongs to, the whole experiment first.

        A pair without a route is in no route's slice: such a slice would only repeat the whole.
        """
        whole = [("experiment", "")]
        return [*whole, ("route", self.route)] if self.route else whole


class SeriesState(msgspec.Struct, frozen=True):
    """One series' memory. `spec` is None until p0 is known; `alert` is the open alert, if any."""

    key: SeriesKey
    spec: DetectorSpec | None = None
    detector: DetectorState | None = None
    baseline: Baseline = Baseline()
    baseline_rate: float | None = None
    """The upper bound taken from the baseline, once it was complete; frozen from then on."""
    alert: Alert | None = None

    @property
    def status(self) -> Status:
        """What the series is doing now."""
        if self.alert is not None:
            return "firing"
        if self.spec is not None:
            return "running"
        return "needs_baseline" if self.baseline_rate is None else "baseline_too_faulty"
