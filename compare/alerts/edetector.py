"""E-detectors as pure folds: sequential tests that may be looked at after every pair.

For each bet k, S_k <- max(S_k, 1) * e_k at each new pair; alarm when the mean of S_k over the bets
reaches A * M (design, section 9; "E-detectors", Shin, Ramdas and Rinaldo, 2022, equation 9, with the
Shiryaev-CUSUM form). Every e_k has mean at most 1 while the process is in control, so the mean time
between false alarms is at least A * M pairs of one series, however often anyone looks, and at least A
over M series.

No clock and no store: the same pairs in the same order give the same state.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import msgspec

RESOLVED_BELOW = 1.5
"""A firing detector is resolved when the mean of S falls below this."""

REGRESSION_BETS = (3.0, 10.0, 30.0, 100.0)
"""p1 as multiples of p0; capped at `MAX_P1`."""
MAX_P1 = 0.5

PAIRED_BETS = (0.1, 0.3, 0.6, 0.9)
PAIRED_MARGIN = 0.95
"""l (1 + d) stays at or below this, so that no factor 1 - l (1 + d) can be negative or zero."""

Kind = Literal["regression_rate", "candidate_only_excess"]
Signal = Literal["fired", "resolved"]


class DetectorSpec(msgspec.Struct, frozen=True):
    """What one detector tests.

    `tolerated` is p0 in (0, 0.5) for `regression_rate`, and d in [0, 0.5) for `candidate_only_excess`.
    `threshold` is A * M, at least 2.
    """

    kind: Kind
    tolerated: float
    threshold: float

    def __post_init__(self) -> None:
        """Raise ValueError if the promise would not hold with these numbers."""
        low_enough = self.tolerated > 0 if self.kind == "regression_rate" else self.tolerated >= 0
        if not (low_enough and self.tolerated < MAX_P1):
            raise ValueError(f"{self.kind}: tolerated rate {self.tolerated} is out of range")
        if not self.threshold >= 2:
            raise ValueError(f"{self.kind}: threshold {self.threshold} is below 2")


class Bet(msgspec.Struct, frozen=True):
    """One S_k, and what was seen since it last left 1 (the current excursion).

    `started_ms` is the mirrored time of the excursion's first pair, Unix milliseconds, None before
    any pair. The counts are of pairs, faults on the candidate and faults on the reference.
    """

    s: float = 1.0
    started_ms: int | None = None
    pairs: int = 0
    candidate: int = 0
    reference: int = 0


class DetectorState(msgspec.Struct, frozen=True):
    """Everything that a detector remembers. Counts are since the detector first started."""

    bets: tuple[Bet, ...]
    is_firing: bool = False
    pairs: int = 0
    candidate: int = 0
    reference: int = 0

    @property
    def statistic(self) -> float:
        """The mean of S_k over the bets."""
        return sum(bet.s for bet in self.bets) / len(self.bets)

    @property
    def leading(self) -> Bet:
        """The bet with the largest S: its excursion estimates when the change began."""
        return max(self.bets, key=lambda bet: bet.s)


@lru_cache(maxsize=4096)
def factors(spec: DetectorSpec) -> tuple[tuple[float, float, float, float], ...]:
    """For each bet its e at (no fault, candidate only, reference only, both), all positive.

    Regressions: e = (p1/p0)^x ((1-p1)/(1-p0))^(1-x), x the candidate's flag.
    Paired: e = 1 + l (1[candidate only] - 1[reference only] - d), d the tolerated excess.
    """
    if spec.kind == "regression_rate":
        p0 = spec.tolerated
        rows = []
        for multiple in REGRESSION_BETS:
            p1 = min(multiple * p0, MAX_P1)
            quiet, faulty = (1 - p1) / (1 - p0), p1 / p0
            rows.append((quiet, faulty, quiet, faulty))
        return tuple(rows)
    d = spec.tolerated
    stakes = [min(bet, PAIRED_MARGIN / (1 + d)) for bet in PAIRED_BETS]
    return tuple((1 - s * d, 1 + s * (1 - d), 1 + s * (-1 - d), 1 - s * d) for s in stakes)


def fresh(spec: DetectorSpec, *, is_firing: bool = False) -> DetectorState:
    """A detector that has seen nothing. `is_firing` keeps an open alert open when the spec changed."""
    return DetectorState(bets=(Bet(),) * len(factors(spec)), is_firing=is_firing)


def step(
    spec: DetectorSpec, state: DetectorState, *, candidate: bool, reference: bool, at_ms: int
) -> tuple[DetectorState, Signal | None, DetectorState]:
    """Fold one pair.

    `candidate` and `reference` say which side's flag is up, `at_ms` is the pair's mirrored time.
    Returns the new state, a signal if the alarm began or ended here, and the state as it was judged:
    before S is capped (at an alarm) or restarted (at a resolution).

    S is capped at the threshold from the alarm on, not before: capped earlier, the mean could only
    reach the threshold when every bet did. Below an alarm no S can exceed the threshold times the
    number of bets, and one factor is at most 1/p0, so nothing overflows.
    """
    column = (1 if candidate else 0) + (2 if reference else 0)
    bets = []
    for bet, row in zip(state.bets, factors(spec), strict=True):
        grown = max(bet.s, 1.0) * row[column]
        goes_on = bet.s > 1.0 and bet.started_ms is not None
        bets.append(
            Bet(
                grown,
                bet.started_ms if goes_on else at_ms,
                (bet.pairs if goes_on else 0) + 1,
                (bet.candidate if goes_on else 0) + candidate,
                (bet.reference if goes_on else 0) + reference,
            )
        )
    judged = DetectorState(
        tuple(bets),
        state.is_firing,
        state.pairs + 1,
        state.candidate + candidate,
        state.reference + reference,
    )
    if not state.is_firing:
        if judged.statistic < spec.threshold:
            return judged, None, judged
        return _capped(spec, judged, is_firing=True), "fired", judged
    capped = _capped(spec, judged, is_firing=True)
    if capped.statistic >= RESOLVED_BELOW:
        return capped, None, judged
    restarted = msgspec.structs.replace(capped, bets=fresh(spec).bets, is_firing=False)
    return restarted, "resolved", judged


def _capped(spec: DetectorSpec, state: DetectorState, *, is_firing: bool) -> DetectorState:
    bets = tuple(
        bet if bet.s <= spec.threshold else msgspec.structs.replace(bet, s=spec.threshold)
        for bet in state.bets
    )
    return msgspec.structs.replace(state, bets=bets, is_firing=is_firing)
