"""Series: a metric in a slice, and what a record brings to each of them."""

from __future__ import annotations

from typing import Literal

import msgspec

from compare.alerts.alert import Alert
from compare.alerts.edetector import PENDING_SHARE, DetectorSpec, DetectorState
from compare.alerts.learning import Part

Status = Literal["running", "pending", "firing", "needs_baseline", "baseline_too_faulty"]
Outcome = Literal["pair", "unscored", "skipped", "failed", "dead_letter"]


class SeriesKey(msgspec.Struct, frozen=True, order=True):
    """A metric in a slice; `value` is the slice's name, or empty for the whole experiment."""

    metric: str
    dimension: str
    value: str


class FoldedPair(msgspec.Struct, frozen=True, kw_only=True):
    """What the detectors need of one consumed record. `mirrored_ms` is Unix milliseconds.

    `outcome` says what became of it; only a `pair` with `is_counted` moves a drift series: others are
    production's own answer in place of the candidate's, or have a request that held a fault already.
    `slices` are the values of `DIMENSIONS` after the first, empty where the pair has none. Scores are None
    where they are unscored.
    """

    topic_id: str
    partition: int
    offset: int
    mirrored_ms: int
    outcome: Outcome = "pair"
    request_hash: str = ""
    slices: tuple[str, ...] = ()
    is_counted: bool = False
    is_regression: bool = False
    is_candidate_only_fault: bool = False
    is_reference_only_fault: bool = False
    cosine_similarity: float | None = None
    schema_validity: float | None = None
    top1_agreement_forced: float | None = None
    kl_forced: float | None = None
    latency_ratio: float | None = None

    @property
    def is_pair(self) -> bool:
        """Whether a pair is stored, scored or not; else the record may yet become one."""
        return self.outcome in ("pair", "unscored")


class HourSum(msgspec.Struct, frozen=True):
    """The pairs of one hour of the fold clock and the sum of their x, in steps of 2^-32."""

    hour_ms: int
    pairs: int = 0
    sum_x: int = 0


class SeriesState(msgspec.Struct, frozen=True):
    """One series' memory. `spec` is None until there is something to test against; `alert` is the open one.

    `learning` holds what it brought to the open baseline of version `learning_version`. `hour` is of the last
    hour in which it moved.
    """

    key: SeriesKey
    spec: DetectorSpec | None = None
    detector: DetectorState | None = None
    learning: Part | None = None
    learning_version: int = 0
    hour: HourSum | None = None
    alert: Alert | None = None
    is_untestable: bool = False
    """Its baseline is so bad, or so scattered, that nothing could be bet against it."""

    @property
    def status(self) -> Status:
        """What the series is doing now."""
        if self.alert is not None:
            return "firing"
        if self.spec is None or self.detector is None:
            return "baseline_too_faulty" if self.is_untestable else "needs_baseline"
        is_pending = self.detector.statistic >= PENDING_SHARE * self.spec.threshold
        return "pending" if is_pending else "running"
