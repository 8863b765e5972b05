"""Where p0 comes from: a declared tolerance, or an upper bound of what the first pairs showed."""

from __future__ import annotations

import msgspec

from compare.alerts.binomial import upper_bound

CONFIDENCE_LOST = 0.05
"""Chance, over all M series together, that a baseline's bound lies under the true rate."""


class Baseline(msgspec.Struct, frozen=True):
    """Counted pairs of the baseline and how many of them regressed."""

    pairs: int = 0
    faulty: int = 0


def upper_rate(baseline: Baseline, series: int) -> float:
    """One-sided exact upper bound, at confidence 1 - 0.05/M, of the rate behind a baseline.

    `series` is M. Returns 1.0 where every pair was faulty. Raises ValueError on an empty or impossible
    baseline.
    """
    n, k = baseline.pairs, baseline.faulty
    if n < 1 or not 0 <= k <= n:
        raise ValueError(f"baseline of {k} faulty in {n} pairs")
    return upper_bound(k, n, CONFIDENCE_LOST / series)
