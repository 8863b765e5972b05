"""How large a change is: the metric before and since, the difference, and 95 % intervals."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from compare.alerts.binomial import lower_bound, upper_bound
from compare.alerts.metrics import Kind

_ERROR = 0.025
_Z = 1.959963984540054

Floats = NDArray[np.float64]


class Effect(msgspec.Struct, frozen=True):
    """Means of a metric before a change and since, and how they differ; None where it cannot be told.

    `unit` is `rate`, `score`, `nats` or `ratio`. For a ratio the means are geometric and `effect` is
    since / before; else it is since - before.
    """

    unit: str
    before: float | None = None
    since: float | None = None
    low: float | None = None
    high: float | None = None
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None


def effect_of(kind: Kind, metric: str, before: Floats, since: Floats) -> Effect:
    """Compare two samples of one metric.

    Rates: exact interval (Clopper and Pearson 1934), difference by Newcombe's method 10 (1998, Statistics in
    Medicine 17). Means: Student's t, difference by Welch's (1947, Biometrika 34); ratios on the logarithm.
    """
    if kind in ("regression_rate", "accounting_rate"):
        return _rates(int(before.sum()), len(before), int(since.sum()), len(since))
    if metric == "latency_ratio":
        # Every ratio of two latencies is over 0.
        return _ratio(_means("ratio", np.log(before), np.log(since)))
    if kind == "rank":
        return _means("nats", before, since)
    return _means("rate" if kind == "candidate_only_excess" else "score", before, since)


def _rates(k0: int, n0: int, k1: int, n1: int) -> Effect:
    if n1 == 0:
        return Effect("rate")
    p1 = k1 / n1
    low, high = lower_bound(k1, n1, _ERROR), upper_bound(k1, n1, _ERROR)
    if n0 == 0:
        return Effect("rate", since=p1, low=low, high=high)
    p0 = k0 / n0
    (l0, u0), (l1, u1) = _wilson(k0, n0), _wilson(k1, n1)
    difference = p1 - p0
    return Effect(
        "rate",
        p0,
        p1,
        low,
        high,
        difference,
        difference - math.hypot(p1 - l1, u0 - p0),
        difference + math.hypot(u1 - p1, p0 - l0),
    )


def _wilson(k: int, n: int) -> tuple[float, float]:
    """The score interval of Wilson 1927."""
    p, z2 = k / n, _Z**2
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return middle - half, middle + half


def _means(unit: str, before: Floats, since: Floats) -> Effect:
    n0, n1 = len(before), len(since)
    if n1 == 0:
        return Effect(unit)
    m0 = float(before.mean()) if n0 else None
    m1 = float(since.mean())
    if n1 < 2:
        return Effect(unit, m0, m1, effect=None if m0 is None else m1 - m0)
    v1 = float(since.var(ddof=1)) / n1
    half = float(stdtrit(n1 - 1, 1 - _ERROR)) * math.sqrt(v1)
    if m0 is None or n0 < 2:
        return Effect(unit, m0, m1, m1 - half, m1 + half, None if m0 is None else m1 - m0)
    v0 = float(before.var(ddof=1)) / n0
    difference = m1 - m0
    if v0 + v1 == 0.0:
        return Effect(unit, m0, m1, m1 - half, m1 + half, difference, difference, difference)
    freedom = (v0 + v1) ** 2 / (v0**2 / (n0 - 1) + v1**2 / (n1 - 1))
    spread = float(stdtrit(freedom, 1 - _ERROR)) * math.sqrt(v0 + v1)
    return Effect(unit, m0, m1, m1 - half, m1 + half, difference, difference - spread, difference + spread)


def _ratio(logs: Effect) -> Effect:
    def back(value: float | None) -> float | None:
        return None if value is None else math.exp(value)

    return Effect(
        "ratio",
        back(logs.before),
        back(logs.since),
        back(logs.low),
        back(logs.high),
        back(logs.effect),
        back(logs.effect_low),
        back(logs.effect_high),
    )
