"""The sequence against direct products, Clopper and Pearson, Newcombe, and simulation under peeking."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from bench.verdict import first_misses, newcombe_width, stopping_times
from compare.ship.bounds import Counts, interval, log_wealth, pairs_needed

SOME = (Counts(0, 0, 1), Counts(0, 0, 300), Counts(3, 1, 96), Counts(20, 0, 0), Counts(40, 60, 1900))


def wealth(m: float, counts: Counts) -> float:
    """The mean wealth by plain multiplication, pair by pair."""
    total = 0.0
    for j in range(1, 65):
        stake = (j / 64) ** 3
        product = 1.0
        for x, times in ((1, counts.candidate_only), (-1, counts.reference_only), (0, counts.neither)):
            product *= (1 - stake * (x - m) / (1 - m)) ** times
        total += product
    return total / 64


@pytest.mark.parametrize("counts", SOME)
def test_the_upper_bound_is_where_the_wealth_reaches_its_limit(counts: Counts) -> None:
    low, high = interval(counts, 0.1)
    if high < 1.0:
        assert wealth(high, counts) == pytest.approx(20.0, rel=1e-6)
        assert wealth(high - 1e-6, counts) < 20.0
        assert log_wealth(
            high, counts.candidate_only, counts.reference_only, counts.neither
        ) == pytest.approx(math.log(20.0))
    mirror = Counts(counts.reference_only, counts.candidate_only, counts.neither)
    assert interval(mirror, 0.1) == (-high, -low)


def test_nothing_and_one_side_only_have_the_widest_bounds() -> None:
    assert interval(Counts(), 0.05) == (-1.0, 1.0)
    assert interval(Counts(20, 0, 0), 0.05)[1] == 1.0
    assert interval(Counts(0, 20, 0), 0.05)[0] == -1.0
    with pytest.raises(ValueError, match="error 1"):
        interval(Counts(), 1.0)


@pytest.mark.parametrize("pairs", [100, 1_000, 100_000])
def test_without_faults_it_is_within_twice_clopper_and_pearson(pairs: int) -> None:
    fixed = binomtest(0, pairs).proportion_ci(0.95, method="exact").high
    _, high = interval(Counts(0, 0, pairs), 0.05)
    assert fixed < high < 2 * fixed


@pytest.mark.parametrize(
    "counts", [Counts(20, 10, 9970), Counts(300, 100, 9600), Counts(100_000, 90_000, 810_000)]
)
def test_the_width_is_within_twice_the_fixed_interval(counts: Counts) -> None:
    low, high = interval(counts, 0.05)
    assert low < counts.excess < high  # type: ignore[operator]
    assert 1.0 < (high - low) / newcombe_width(counts, 0.05) < 2.0


@pytest.mark.parametrize(("more", "less"), [(0.02, 0.02), (0.06, 0.01), (0.3, 0.3)])
def test_looking_after_every_pair_misses_no_more_than_promised(more: float, less: float) -> None:
    """300 streams of 2,000 pairs at an error of 10 %: a 95 % bound of the misses must not be over it."""
    missed, fixed = first_misses(more, less, pairs=2_000, streams=300, error=0.1, seed=5)
    assert binomtest(int(missed), 300).proportion_ci(0.95, method="exact").low <= 0.1
    # What the fixed-n interval of the same confidence does under the same looks.
    assert fixed > 3 * max(int(missed), 10)


def test_the_estimate_of_pairs_is_about_right() -> None:
    """The counts are at their expectation after 500 pairs; then real pairs come until a bound passes."""
    seen = Counts(2, 1, 497)
    needed = pairs_needed(seen, 0.01, 0.05)
    assert needed is not None and needed > 300
    seen_times = stopping_times(
        seen, 0.004, 0.002, margin=0.01, error=0.05, streams=200, most=20 * needed, seed=3
    )
    assert 0.7 < float(np.median(seen_times)) / needed < 1.4
    # Rates that stay exactly as they are pass the margin at that number, and not at half of it.
    times = (seen.pairs + needed) / seen.pairs
    assert log_wealth(0.01, 2 * times, 1 * times, 497 * times) >= math.log(40.0)
    times = (seen.pairs + needed * 0.98) / seen.pairs
    assert log_wealth(0.01, 2 * times, 1 * times, 497 * times) < math.log(40.0)


def test_no_estimate_where_there_is_none() -> None:
    assert pairs_needed(Counts(), 0.01, 0.05) is None
    assert pairs_needed(Counts(1, 0, 99), 0.01, 0.05) is None
    assert pairs_needed(Counts(0, 0, 10_000), 0.01, 0.05) == 0
    assert pairs_needed(Counts(500, 0, 500), 0.01, 0.05) == 0
