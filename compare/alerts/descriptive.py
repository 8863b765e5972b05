"""scipy's tests of the pairs before a change against those since. They describe; they never raised anything.

The samples were picked out by an alarm, so a p-value here is small by construction: it ranks slices and
scores against each other, and states nothing about false alarms. `scipy.stats` is imported when an alert
exists and not before (46 MiB).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from compare.alerts.evidence import NamedTest, SliceTest
from compare.alerts.metrics import Kind

LEAST_PAIRS = 5
"""Pairs of a slice since the change, and before it, from which it is tested."""
MOST_SLICES = 200
_COUNTS: tuple[Kind, ...] = ("regression_rate", "accounting_rate")

Floats = NDArray[np.float64]


def describe_samples(kind: Kind, before: Floats, since: Floats) -> tuple[NamedTest, ...]:
    """Test what fits the kind: Fisher for counts, else Mann-Whitney, Kolmogorov-Smirnov and Wasserstein."""
    if not len(before) or not len(since):
        return ()
    from scipy import stats

    if kind in _COUNTS:
        return (_fisher("fisher_exact", before, since),)
    if kind == "candidate_only_excess":
        # Which side is faulty alone, since the change: McNemar's exact test.
        only_candidate, only_reference = int((since > 0).sum()), int((since < 0).sum())
        found = [_fisher("fisher_exact", before > 0, since > 0)]
        if only_candidate + only_reference:
            exact = stats.binomtest(only_candidate, only_candidate + only_reference)
            found.append(
                NamedTest("mcnemar_exact", float(only_candidate - only_reference), float(exact.pvalue))
            )
        return tuple(found)
    rank = stats.mannwhitneyu(since, before, method="asymptotic")
    ks = stats.ks_2samp(since, before, method="asymp")
    distance = float(stats.wasserstein_distance(since, before))
    return (
        NamedTest("mann_whitney_u", float(rank.statistic), float(rank.pvalue)),
        NamedTest("kolmogorov_smirnov", float(ks.statistic), float(ks.pvalue)),
        NamedTest("wasserstein_distance", distance, None),
    )


def compare_slices(
    kind: Kind,
    before: Floats,
    since: Floats,
    slices: Mapping[str, Sequence[str]],
    *,
    most: int = MOST_SLICES,
) -> tuple[SliceTest, ...]:
    """Test each slice of each dimension by itself; p-values adjusted over all of them, least first.

    `slices` holds the values of each dimension for the pairs before and then those since. At most `most`
    slices, those with the most pairs. The adjustment is `scipy.stats.false_discovery_control`'s
    (Benjamini and Hochberg 1995).
    """
    x = np.concatenate([before, since])
    cut: list[tuple[int, str, str, Floats, Floats]] = []
    for dimension, values in slices.items():
        # Each value has a number; sorted by it, stably, a slice's pairs are together, those before first.
        number = {value: place for place, value in enumerate(dict.fromkeys(values))}
        numbers = np.fromiter(map(number.__getitem__, values), dtype=np.int64, count=len(x))
        cut_x = x[np.argsort(numbers, kind="stable")]
        all_of = np.bincount(numbers, minlength=len(number)).tolist()
        old_of = np.bincount(numbers[: len(before)], minlength=len(number)).tolist()
        end = 0
        for value, count, old in zip(number, all_of, old_of, strict=True):
            start, end = end, end + count
            if value and min(old, count - old) >= LEAST_PAIRS:
                parts = cut_x[start : start + old], cut_x[start + old : end]
                cut.append((count - old, dimension, value, *parts))
    if not cut:
        return ()
    from scipy import stats

    cut.sort(key=lambda one: (-one[0], one[1], one[2]))
    cut = cut[:most]
    tests = [_one(kind, old, new) for _, _, _, old, new in cut]
    adjusted = stats.false_discovery_control([p for _, p in tests])
    found = [
        SliceTest(dimension, value, pairs, effect, p, float(q))
        for (pairs, dimension, value, _, _), (effect, p), q in zip(cut, tests, adjusted, strict=True)
    ]
    return tuple(sorted(found, key=lambda one: (one.p_adjusted, one.p_value, one.dimension, one.slice)))


def _one(kind: Kind, before: Floats, since: Floats) -> tuple[float, float]:
    """The difference of the means and the p-value of one slice."""
    effect = float(since.mean() - before.mean())
    if kind in _COUNTS or kind == "candidate_only_excess":
        p = _fisher("", before > 0, since > 0).p_value
        return effect, 1.0 if p is None else p
    return effect, mann_whitney_p(since, before)


def mann_whitney_p(one: Floats, other: Floats) -> float:
    """Two-sided p-value of the test by its normal approximation, corrected for ties and continuity (Mann and
    Whitney 1947): that of `scipy.stats.mannwhitneyu(method="asymptotic")`, without 2 ms of preparations.
    """
    n, m = len(one), len(other)
    _, place, counts = np.unique(np.concatenate([one, other]), return_inverse=True, return_counts=True)
    if len(counts) == 1:
        # Nothing differs: the test is not defined where all values are one.
        return 1.0
    ranks = np.cumsum(counts) - (counts - 1) / 2
    u = float(ranks[place[:n]].sum()) - n * (n + 1) / 2
    ties = float((counts.astype(np.float64) ** 3 - counts).sum()) / ((n + m) * (n + m - 1))
    spread = math.sqrt(n * m / 12 * (n + m + 1 - ties))
    z = (max(u, n * m - u) - n * m / 2 - 0.5) / spread
    return min(2.0 * float(ndtr(-z)), 1.0)


def _fisher(name: str, before: Floats | NDArray[np.bool_], since: Floats | NDArray[np.bool_]) -> NamedTest:
    """Fisher's exact test; its statistic is the difference of the rates, which exists for every table."""
    from scipy import stats

    k0, k1 = int(np.count_nonzero(before)), int(np.count_nonzero(since))
    table = np.array([[k1, len(since) - k1], [k0, len(before) - k0]])
    found = stats.fisher_exact(table)
    return NamedTest(name, k1 / len(since) - k0 / len(before), float(found.pvalue))
