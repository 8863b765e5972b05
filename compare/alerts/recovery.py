"""When an open alert ends: a reverse e-detector that accuses "it is still far from what is tolerated".

At the alarm the leading bet's excursion says how bad it is, and `level` is set half way from what is
tolerated to that: the geometric mean of rates, the middle for the other kinds. W <- max(W, 1) * e' at each
further pair, where e' has mean at most 1 as long as the mean of x, given the past, is at `level` or worse:
so an alert is resolved at most once in `patience` pairs on average while it stays so bad, under any
peeking. S begins at 1 with the alarm, and again whenever the mean of W is at most 1: it then is of those
pairs only that speak for a recovery.

- Resolved: mean W >= `patience` and mean S < 1.5: no longer where it was, and nothing says that it is worse
  than tolerated.
- Anchored anew: mean S >= the threshold. It left its level for another one that is not tolerated either (it
  would fire again now); W begins at 1 against a `level` taken from this excursion. So an alert does not
  resolve and fire again while a candidate is half repaired.
"""

from __future__ import annotations

import math

import numpy as np

from compare.alerts.edetector import MARGIN, MAX_P1, STAKES, Bet, DetectorSpec, Floats, Recovery
from compare.alerts.metrics import Kind

RESOLVED_BELOW = 1.5
"""A firing detector is resolved only while the mean of S is below this."""
SHARE_OF_SEEN = 0.5


def recovery_from(spec: DetectorSpec, lead: Bet) -> Recovery:
    """What to accuse after an alarm that this excursion raised."""
    level = _level(spec, lead)
    return Recovery(level, (0,) * reverse_factors(spec, level, np.zeros(1)).shape[-1])


def _level(spec: DetectorSpec, lead: Bet) -> float:
    if spec.kind in ("regression_rate", "accounting_rate"):
        return min(math.sqrt(spec.tolerated * lead.total / lead.pairs), MAX_P1)
    return spec.tolerated + SHARE_OF_SEEN * (lead.total / lead.pairs - spec.tolerated)


def is_worse(kind: Kind, level: float, tolerated: float) -> bool:
    """Whether a mean of x at `level` is on the far side of what is tolerated."""
    return level < tolerated if kind == "bounded_mean" else level > tolerated


def reverse_factors(spec: DetectorSpec, level: float, x: Floats) -> Floats:
    """E' of each x for each reverse bet, all positive, with mean at most 1 where the mean of x is at `level`.

    Shape of `x` and one axis more, the bets. Rates: the likelihood ratio of p' against `level`, p' the
    tolerated rate and the geometric mean of both. Else the mirror of `edetector.factors`.
    """
    x = x[..., None]
    if spec.kind in ("regression_rate", "accounting_rate"):
        better = np.asarray((spec.tolerated, math.sqrt(spec.tolerated * level)))
        return np.asarray(np.where(x > 0, better / level, (1 - better) / (1 - level)), dtype=np.float64)
    shares = np.asarray(STAKES) * MARGIN
    if spec.kind == "bounded_mean":
        return np.asarray(1 + shares / level * (x - level))
    return np.asarray(1 + shares / (1 - level) * (level - x))
