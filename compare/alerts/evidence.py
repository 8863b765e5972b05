"""What is behind an alert: numbers that describe it, gathered from the store. They never raise one."""

from __future__ import annotations

from datetime import datetime

import msgspec

from compare.alerts.alert import FamilyCount, PairPosition, Severity

FEW_BEFORE = 30
"""Of fewer pairs from before, a change's interval says nothing that anybody could use: it is not shown."""


class ServedChange(msgspec.Struct, frozen=True):
    """An endpoint that served something else about when the change began; `before` and `after` in words."""

    role: str
    endpoint_name: str
    seen_at: datetime
    before: str
    after: str


class NamedTest(msgspec.Struct, frozen=True):
    """A test of the pairs before the change against those since; no p-value where it is a distance."""

    name: str
    statistic: float
    p_value: float | None


class SliceTest(msgspec.Struct, frozen=True):
    """The alert's metric in one slice of the traffic: pairs since the change, effect, p-value.

    `p_adjusted` is the p-value across all slices that were tested, by Benjamini and Hochberg (1995).
    """

    dimension: str
    slice: str
    pairs: int
    effect: float
    p_value: float
    p_adjusted: float


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one alert at `gathered_at`. Its fields are the columns of `alert_evidence`.

    `value_*` are the metric's mean before the change and since, with a 95 % interval of the latter;
    `effect_*` the difference of the two. `unit` is theirs: `rate`, `score`, `nats` or `ratio` (for a
    ratio, `effect` is since / before). `change_*` say since when, `change_pairs` how many pairs the 95 %
    set of that start holds. `excess_*` is what is left of the metric's distance over its noise floor, with
    `noise_requests` requests that were asked twice. `detectable` is the least effect that the detector
    would show within `detectable_hours` at `pairs_per_hour` (0.0: not known). None: it cannot be told.
    """

    experiment: str
    candidate: str
    alert_id: str
    gathered_at: datetime
    version: int
    severity: Severity
    unit: str = ""
    pairs_before: int = 0
    pairs_since: int = 0
    value_before: float | None = None
    value_since: float | None = None
    value_low: float | None = None
    value_high: float | None = None
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None
    change_at: datetime | None = None
    change_earliest_at: datetime | None = None
    change_latest_at: datetime | None = None
    change_pairs: int | None = None
    noise_floor: float | None = None
    noise_requests: int = 0
    excess: float | None = None
    excess_low: float | None = None
    excess_high: float | None = None
    detectable: float | None = None
    detectable_hours: float = 24.0
    pairs_per_hour: float = 0.0
    families: tuple[FamilyCount, ...] = ()
    worst_pairs: tuple[PairPosition, ...] = ()
    served_changes: tuple[ServedChange, ...] = ()
    tests: tuple[NamedTest, ...] = ()
    slices: tuple[SliceTest, ...] = ()
    summary: str = ""
