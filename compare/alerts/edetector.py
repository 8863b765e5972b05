"""E-detectors as pure folds: sequential tests that may be looked at after every pair.

For each bet k, S_k <- max(S_k, 1) * e_k at each new pair; alarm when the mean of S_k over the bets
reaches A * M (design, section 9; "E-detectors", Shin, Ramdas and Rinaldo, 2022, equation 9, with the
Shiryaev-CUSUM form). Every e_k has mean at most 1 while the process is in control, so the mean time
between false alarms is at least A * M pairs of one series, however often anyone looks, and at least A
over M series. While an alert is open, `compare.alerts.recovery` says when it ends.

S is kept as a whole number, its natural logarithm in steps of 2^-32, and each ln e_k is rounded down to
such a step: sums of whole numbers are exact, so any cut of the same pairs into chunks gives the same state
bit for bit, and rounding down only makes alarms later (by 2^-32 a pair).

No clock and no store: the same pairs in the same order give the same state.
"""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from compare.alerts.metrics import Kind

ONE = 2**32
"""One nat, or one unit of a value, as a whole number."""

REGRESSION_BETS = (3.0, 10.0, 30.0, 100.0)
"""p1 as multiples of p0; capped at `MAX_P1`."""
MAX_P1 = 0.5
PAIRED_BETS = (0.1, 0.3, 0.6, 0.9)
MARGIN = 0.95
"""The share of the largest stake that leaves no factor at zero."""
STAKES = (0.1, 0.3, 0.6, 1.0)
"""Bets on means and ranks, as shares of the largest stake."""
PENDING_SHARE = 0.01
"""A series is pending from this share of its threshold on: a hundred times less sure than an alarm."""

_LARGEST_LOG = 700.0
"""What a float's exp still holds."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class DetectorSpec(msgspec.Struct, frozen=True):
    """What one detector tests: that the mean of x, given the past, is no worse than `tolerated`.

    x is 0 or 1 and `tolerated` p0 in (0, 0.5) for `regression_rate` and `accounting_rate`; x is -1, 0 or 1
    and `tolerated` d in [0, 0.5) for `candidate_only_excess`; x in [0, 1] and `tolerated` m in (0, 1) for
    `bounded_mean` (the mean is at least m) and `rank` (it is at most m). `threshold` is A * M, at least 2;
    `patience`, over 1, is the mean number of pairs between false resolutions. `baseline_version` names
    what `tolerated` was taken from; 0 is a declared tolerance.
    """

    kind: Kind
    tolerated: float
    threshold: float
    patience: float = 1_000.0
    baseline_version: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError if the promise would not hold with these numbers."""
        low, high = _RANGES[self.kind]
        is_inside = low < self.tolerated < high or (
            self.kind == "candidate_only_excess" and self.tolerated == 0
        )
        if not is_inside:
            raise ValueError(f"{self.kind}: tolerated {self.tolerated} is not between {low} and {high}")
        if not self.threshold >= 2:
            raise ValueError(f"{self.kind}: threshold {self.threshold} is below 2")
        if not self.patience > 1:
            raise ValueError(f"{self.kind}: patience {self.patience} is not over 1")


_RANGES: dict[Kind, tuple[float, float]] = {
    "regression_rate": (0.0, MAX_P1),
    "accounting_rate": (0.0, MAX_P1),
    "candidate_only_excess": (0.0, 0.5),
    "bounded_mean": (0.0, 1.0),
    "rank": (0.0, 1.0),
}


class Bet(msgspec.Struct, frozen=True):
    """One S_k, and what was seen since it last left 1 (the current excursion).

    `log_s` is ln S_k in steps of 2^-32. `started_ms` is the mirrored time of the excursion's first pair,
    Unix milliseconds, None before any pair. The counts are of pairs, faults on the candidate and faults on
    the reference (0 where x is no count); `sum_x` is the sum of x in steps of 2^-32.
    """

    log_s: int = 0
    started_ms: int | None = None
    pairs: int = 0
    candidate: int = 0
    reference: int = 0
    sum_x: int = 0

    @property
    def s(self) -> float:
        """S_k."""
        return math.exp(min(self.log_s / ONE, _LARGEST_LOG))

    @property
    def total(self) -> float:
        """The sum of x since the excursion began."""
        return self.sum_x / ONE


class Recovery(msgspec.Struct, frozen=True):
    """What an open alert is judged by: `compare.alerts.recovery`.

    `level` is the mean of x that the alert stands for; `log_w` are the logarithms of the reverse bets that
    it is no longer there, in steps of 2^-32.
    """

    level: float
    log_w: tuple[int, ...]

    @property
    def statistic(self) -> float:
        """The mean of W over the reverse bets."""
        return sum(math.exp(min(log_w / ONE, _LARGEST_LOG)) for log_w in self.log_w) / len(self.log_w)


class DetectorState(msgspec.Struct, frozen=True):
    """Everything that a detector remembers. Counts are since the detector first started.

    From an alarm on, S is of the pairs since `recovery.statistic` was last at most 1.
    """

    bets: tuple[Bet, ...]
    is_firing: bool = False
    pairs: int = 0
    candidate: int = 0
    reference: int = 0
    sum_x: int = 0
    recovery: Recovery | None = None

    @property
    def statistic(self) -> float:
        """The mean of S_k over the bets."""
        return sum(bet.s for bet in self.bets) / len(self.bets)

    @property
    def leading(self) -> Bet:
        """The bet with the largest S: its excursion estimates when the change began."""
        return max(self.bets, key=lambda bet: bet.log_s)


@lru_cache(maxsize=4096)
def stakes(kind: Kind, tolerated: float) -> tuple[float, ...]:
    """What each bet stakes: p1 of a rate's likelihood ratio, else l of the linear factor."""
    if kind in ("regression_rate", "accounting_rate"):
        return tuple(min(multiple * tolerated, MAX_P1) for multiple in REGRESSION_BETS)
    if kind == "candidate_only_excess":
        return tuple(min(bet, MARGIN / (1 + tolerated)) for bet in PAIRED_BETS)
    room = 1 - tolerated if kind == "bounded_mean" else tolerated
    return tuple(share * MARGIN / room for share in STAKES)


def factors(kind: Kind, tolerated: float | Floats, x: Floats) -> Floats:
    """E of each x for each bet, all positive, with mean at most 1 where the mean of x is tolerated.

    Shape of `x` (with which `tolerated` broadcasts) and one axis more, the bets.

    Rates: (p1/p0)^x ((1-p1)/(1-p0))^(1-x). Paired: 1 + l (x - d). Means: 1 + l (m - x). Ranks: 1 + l (x - m).
    """
    t = np.asarray(tolerated, dtype=np.float64)[..., None]
    x = x[..., None]
    if kind in ("regression_rate", "accounting_rate"):
        p1 = np.minimum(np.asarray(REGRESSION_BETS) * t, MAX_P1)
        return np.asarray(np.where(x > 0, p1 / t, (1 - p1) / (1 - t)), dtype=np.float64)
    if kind == "candidate_only_excess":
        return np.asarray(1 + np.minimum(np.asarray(PAIRED_BETS), MARGIN / (1 + t)) * (x - t))
    stake = np.asarray(STAKES) * MARGIN
    if kind == "bounded_mean":
        return np.asarray(1 + stake / (1 - t) * (t - x))
    return np.asarray(1 + stake / t * (x - t))


def increments(e: Floats) -> Ints:
    """Ln e in steps of 2^-32, rounded down."""
    return np.asarray(np.floor(np.log(e) * ONE), dtype=np.int64)


def fresh(spec: DetectorSpec, *, is_firing: bool = False) -> DetectorState:
    """A detector that has seen nothing. `is_firing` keeps an open alert open when the spec changed."""
    return DetectorState(bets=(Bet(),) * len(stakes(spec.kind, spec.tolerated)), is_firing=is_firing)
