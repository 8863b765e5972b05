"""Exact statements about k of n, by the incomplete beta function.

The same as `scipy.stats.binomtest`, to rounding; that module takes 46 MiB more, which the service would hold
for good.
"""

from __future__ import annotations

from scipy.special import betainc, betaincinv


def upper_bound(k: int, n: int, error: float) -> float:
    """Return the rate that is under the true one with chance `error` at most (Clopper and Pearson 1934)."""
    return 1.0 if k == n else float(betaincinv(k + 1, n - k, 1.0 - error))


def lower_bound(k: int, n: int, error: float) -> float:
    """Return the rate that is over the true one with chance `error` at most (Clopper and Pearson 1934)."""
    return 0.0 if k == 0 else float(betaincinv(k, n - k + 1, error))


def chance_of_at_least(k: int, n: int, rate: float) -> float:
    """Return the chance of k or more of n: the exact test's one-sided p-value."""
    return 1.0 if k == 0 else float(betainc(k, n - k + 1, rate))
