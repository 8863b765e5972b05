"""How small a change a detector would see within some hours, at today's traffic.

Under a change that makes the mean of ln e_k equal to g_k for bet k, S_k grows by g_k a pair. The alarm comes
when the mean of S over the K bets reaches the threshold A M, so after about ln(K A M) / max_k g_k pairs
(Wald 1947, Sequential Analysis; the overshoot is left out), as in `sql/queries/detection_power.sql`. The
least change is found by bisection, since max_k g_k grows with the change.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from compare.alerts.edetector import factors, stakes
from compare.alerts.metrics import Kind

_STEPS = 40

Floats = NDArray[np.float64]


def detectable(kind: Kind, tolerated: float, threshold: float, before: Floats, pairs: float) -> float | None:
    """Return the least change that `pairs` pairs would show, None if no change would.

    The unit is the kind's own: the faulty share (rates), the excess of faults on the candidate alone
    (paired), the fall of the mean (`bounded_mean`), the factor on all values (`rank`). `before` are pairs
    without the change; rates need none.
    """
    if pairs <= 0:
        return None
    need = math.log(len(stakes(kind, tolerated)) * threshold) / pairs
    if kind in ("regression_rate", "accounting_rate"):
        logs = np.log(factors(kind, tolerated, np.array([0.0, 1.0])))
        return _least(lambda p: float(((1 - p) * logs[0] + p * logs[1]).max()), tolerated, 1.0, need)
    if not len(before):
        return None
    if kind == "candidate_only_excess":
        logs = np.log(factors(kind, tolerated, np.array([-1.0, 0.0, 1.0])))
        r = float((before < 0).mean())

        def paired(excess: float) -> float:
            q = min(r + excess, 1.0 - r)
            return float((r * logs[0] + (1 - q - r) * logs[1] + q * logs[2]).max())

        return _least(paired, 0.0, 1.0 - 2 * r, need)
    if kind == "bounded_mean":
        return _least(
            lambda fall: _growth(kind, tolerated, np.clip(before - fall, 0.0, 1.0)),
            0.0,
            float(before.mean()),
            need,
        )
    ranked = np.sort(before)

    def scaled(log_factor: float) -> float:
        x = before * math.exp(log_factor)
        below = np.searchsorted(ranked, x, "left") + np.searchsorted(ranked, x, "right")
        return _growth(kind, tolerated, below / (2.0 * len(ranked)))

    log_factor = _least(scaled, 0.0, math.log(1_000.0), need)
    return None if log_factor is None else math.exp(log_factor)


def _growth(kind: Kind, tolerated: float, x: Floats) -> float:
    return float(np.log(factors(kind, tolerated, x)).mean(axis=0).max())


def _least(growth: Callable[[float], float], low: float, high: float, need: float) -> float | None:
    if high <= low or growth(high) < need:
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if growth(middle) < need:
            low = middle
        else:
            high = middle
    return high
