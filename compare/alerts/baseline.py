"""Where p0 comes from: a declared tolerance, or an upper bound of what the first pairs showed."""

from __future__ import annotations

import msgspec
from scipy.stats import beta

CONFIDENCE_LOST = 0.05
"""Chance, over all M series together, that a baseline's bound lies under the true rate."""


class Baseline(msgspec.Struct, frozen=True):
    """Counted pairs of the baseline and how many of them regressed."""

    pairs: int = 0
    faulty: int = 0


def upper_rate(baseline: Baseline, series: int) -> float:
    """One-sided exact upper bound, at confidence 1 - 0.05/M, of the rate behind a baseline.

    `series` is M. Clopper and Pearson (1934): the quantile of Beta(k + 1, n - k). Returns 1.0 where
    every pair was faulty. Raises ValueError on an empty or impossible baseline.
    """
    n, k = baseline.pairs, baseline.faulty
    if n < 1 or not 0 <= k <= n:
        raise ValueError(f"baseline of {k} faulty in {n} pairs")
    if k == n:
        return 1.0
    return float(beta.ppf(1 - CONFIDENCE_LOST / series, k + 1, n - k))
