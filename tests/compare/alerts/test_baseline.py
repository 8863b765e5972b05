from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from compare.alerts.baseline import MetricBaseline, bound_of, closed, deviation_between, tolerated
from compare.alerts.learning import HOUR_MS, Moments, Part, learned, moments_of
from compare.alerts.metrics import SERIES_FACTOR
from compare.alerts.sketch import Sketch, extended

WHOLE = ("experiment", "")
Floats = NDArray[np.float64]


def flags(n: int, faulty: int) -> Floats:
    return np.asarray([1.0] * faulty + [0.0] * (n - faulty))


def part_of(x: Floats, *, is_rank: bool = False, ms: Floats | None = None) -> Part:
    at = np.zeros(x.size, dtype=np.int64) if ms is None else ms.astype(np.int64)
    return learned(Part(), x, at, is_rank=is_rank, is_whole=True)


@pytest.mark.parametrize(("pairs", "faulty"), [(2000, 0), (2000, 4), (50, 7)])
def test_bound_of_a_rate_is_where_so_few_faults_become_improbable(pairs: int, faulty: int) -> None:
    bound = bound_of("regression_rate", Part(moments_of(flags(pairs, faulty))), 4)
    assert binom.cdf(faulty, pairs, bound) == pytest.approx(0.05 / 4, rel=1e-6)


def test_bound_of_a_rate_without_faults_has_a_closed_form() -> None:
    # (1 - p)^n = 0.05 / M
    bound = bound_of("accounting_rate", Part(moments_of(flags(2000, 0))), 4)
    assert bound == pytest.approx(1 - (0.05 / 4) ** (1 / 2000))
    assert bound_of("regression_rate", Part(moments_of(flags(10, 10)))) == 1.0


def test_bound_of_a_mean_of_flags_is_exact() -> None:
    bound = bound_of("bounded_mean", Part(moments_of(1 - flags(2000, 4))), 4)
    assert binom.sf(1995, 2000, bound) == pytest.approx(0.05 / 4, rel=1e-6)


def test_bound_of_a_mean_is_maurer_and_pontils() -> None:
    x = np.random.default_rng(1).beta(9, 1, 500)
    log_term = math.log(2 * 52 / 0.05)
    expected = x.mean() - math.sqrt(2 * x.var(ddof=1) * log_term / 500) - 7 * log_term / (3 * 499)
    assert bound_of("bounded_mean", Part(moments_of(x)), 52) == pytest.approx(expected, rel=1e-6)


def test_bound_of_a_mean_covers_what_it_promises() -> None:
    """1,000 baselines of 200 values at an error of 5 %: at most 5 % of them miss, and three deviations."""
    rng = np.random.default_rng(2)
    bounds = [bound_of("bounded_mean", Part(moments_of(rng.beta(9, 1, 200))), 1) for _ in range(1000)]
    assert sum(bound > 0.9 for bound in bounds) <= 50 + 3 * math.sqrt(1000 * 0.05 * 0.95)


def test_bound_of_a_rank_covers_the_choice_of_the_baseline() -> None:
    """1,000 baselines of 100: the mean rank of fresh values is over the bound in at most 5 %."""
    rng = np.random.default_rng(3)
    part = part_of(rng.normal(size=100), is_rank=True)
    bound = bound_of("rank", part, 1)
    assert bound == pytest.approx(0.5 + norm.ppf(0.95) / math.sqrt(1200))
    # Of a baseline of uniform values v, the mean rank of fresh uniform values is 1 - mean(v).
    means = 1 - rng.random((1000, 100)).mean(axis=1)
    assert (means > bound).sum() <= 50 + 3 * math.sqrt(1000 * 0.05 * 0.95)


def test_bound_of_a_rank_holds_the_sketchs_error() -> None:
    sketch = extended(Sketch(64), np.random.default_rng(4).normal(size=4000))
    part = Part(Moments(4000), sketch=sketch)
    assert sketch.error > 0
    exact = 0.5 + norm.ppf(1 - 0.05 / SERIES_FACTOR) / math.sqrt(48_000)
    assert bound_of("rank", part) == pytest.approx(exact + sketch.error / 4000)


def test_empty_part_is_refused() -> None:
    with pytest.raises(ValueError, match="no pairs"):
        bound_of("regression_rate", Part())
    with pytest.raises(ValueError, match="kl_forced holds no pair"):
        closed(MetricBaseline(metric="kl_forced"), {}, min_pairs=1, from_ms=0, to_ms=0)


def test_deviation_between_groups_by_hand() -> None:
    # Groups 1, 3 and 5, 7: means 2 and 6 about 4, SSB = 16, pooled variance 2, weight 4 - 8/4 = 2.
    groups = [moments_of(np.asarray([1.0, 3.0])), moments_of(np.asarray([5.0, 7.0]))]
    assert deviation_between(groups) == pytest.approx(math.sqrt((16 - 2) / 2), rel=1e-6)
    assert deviation_between(groups[:1]) == 0.0
    assert deviation_between([*groups[:1], Moments()]) == 0.0


def test_deviation_between_equal_groups_is_small_and_of_unequal_ones_right() -> None:
    rng = np.random.default_rng(5)
    equal = [moments_of(rng.normal(0.5, 0.1, 40)) for _ in range(50)]
    unequal = [moments_of(rng.normal(0.5 + shift, 0.1, 40)) for shift in rng.normal(0, 0.05, 400)]
    assert deviation_between(equal) < 0.01
    assert deviation_between(unequal) == pytest.approx(0.05, rel=0.15)


def similarity(level: float, n: int, seed: int) -> Floats:
    return np.clip(np.random.default_rng(seed).normal(level, 0.03, n), 0, 1)


def test_slice_with_few_pairs_uses_the_whole_widened_by_the_spread_of_the_slices() -> None:
    high, low = similarity(0.95, 1900, 1), similarity(0.85, 2100, 2)
    parts = {
        WHOLE: part_of(np.concatenate([high, low])),
        ("route", "a"): part_of(high),
        ("route", "b"): part_of(low),
    }
    one = closed(MetricBaseline(metric="cosine_similarity"), parts, min_pairs=2000, from_ms=0, to_ms=1)
    assert (one.version, one.is_open, list(one.own)) == (1, False, ["route"])
    assert list(one.own["route"]) == ["b"]
    # Two routes 0.1 apart: the deviation between two equal groups is 0.1 / sqrt(2).
    assert one.spreads["route"] == pytest.approx(2 * 0.1 / math.sqrt(2), rel=0.05)
    # Only one hour was seen: the mix may swing by as much as the routes differ.
    assert one.swing == pytest.approx(one.spreads["route"] * 1.5 / 2)
    whole = bound_of("bounded_mean", one.whole)
    assert tolerated(one, "experiment", "") == pytest.approx(whole - one.swing)
    assert tolerated(one, "route", "a") == pytest.approx(whole - one.swing - one.spreads["route"])
    assert tolerated(one, "route", "never seen") == tolerated(one, "route", "a")
    assert tolerated(one, "route", "b") == pytest.approx(
        bound_of("bounded_mean", one.own["route"]["b"]) - one.swing
    )
    assert tolerated(one, "tenant", "x") == pytest.approx(whole - one.swing)


def test_day_of_hours_gives_the_observed_swing() -> None:
    rng = np.random.default_rng(6)
    hours = np.repeat(np.arange(24), 400)
    wave = 0.02 * np.sin(2 * math.pi * hours / 24)
    x = np.clip(rng.normal(0.9 + wave, 0.03), 0, 1)
    parts = {
        WHOLE: part_of(x, ms=(hours * HOUR_MS).astype(np.float64)),
        ("route", "a"): part_of(similarity(0.5, 50, 7)),
    }
    one = closed(MetricBaseline(metric="cosine_similarity"), parts, min_pairs=2000, from_ms=0, to_ms=1)
    # Twice the deviation of a sine of 0.02: its lowest hour is inside.
    assert one.swing == pytest.approx(2 * 0.02 / math.sqrt(2), rel=0.1)
    assert (tolerated(one, "experiment", "") or 1.0) < 0.88


def test_swing_of_ranks_is_in_ranks() -> None:
    rng = np.random.default_rng(7)
    hours = np.repeat(np.arange(24), 500)
    x = rng.normal(np.where(hours < 12, 0.5, -0.5), 1.0)
    parts = {WHOLE: part_of(x, is_rank=True, ms=(hours * HOUR_MS).astype(np.float64))}
    one = closed(MetricBaseline(metric="latency_ratio"), parts, min_pairs=2000, from_ms=0, to_ms=1)
    # Ranks of two halves one deviation apart: means 1/2 +- (Phi(1/sqrt(2)) - 1/2) / 2.
    half = (norm.cdf(1 / math.sqrt(2)) - 0.5) / 2
    assert one.swing == pytest.approx(2 * half, rel=0.15)


def test_baseline_that_leaves_nothing_to_bet_tolerates_nothing() -> None:
    bad = {WHOLE: part_of(flags(2000, 1100))}
    one = closed(MetricBaseline(metric="regression_rate"), bad, min_pairs=2000, from_ms=0, to_ms=1)
    assert tolerated(one, "experiment", "") is None
