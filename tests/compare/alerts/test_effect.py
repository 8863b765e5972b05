"""Effect sizes, tests and power against scipy, published examples and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from compare.alerts.descriptive import compare_slices, describe_samples
from compare.alerts.edetector import factors, stakes
from compare.alerts.effect import effect_of
from compare.alerts.metrics import Kind
from compare.alerts.power import detectable

RNG = np.random.default_rng(3)


def flags(faulty: int, pairs: int) -> np.ndarray:
    return np.array([1.0] * faulty + [0.0] * (pairs - faulty))


def test_rates_as_in_newcombes_paper() -> None:
    # Newcombe 1998, table II, example (a): 56/70 against 48/80, method 10: 0.0524 to 0.3339.
    found = effect_of("regression_rate", "regression_rate", flags(48, 80), flags(56, 70))
    assert found.effect == pytest.approx(0.2)
    assert (found.effect_low, found.effect_high) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    exact = stats.binomtest(56, 70).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_means_as_scipy_has_them() -> None:
    before, since = RNG.beta(20, 2, 300), RNG.beta(15, 4, 40)
    found = effect_of("bounded_mean", "cosine_similarity", before, since)
    welch = stats.ttest_ind(since, before, equal_var=False).confidence_interval()
    assert (found.effect_low, found.effect_high) == pytest.approx((welch.low, welch.high))
    student = stats.ttest_1samp(since, 0.0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((student.low, student.high))
    assert found.unit == "score"


def test_ratios_are_factors() -> None:
    before, since = RNG.lognormal(0, 0.3, 200), RNG.lognormal(math.log(1.3), 0.3, 200)
    found = effect_of("rank", "latency_ratio", before, since)
    assert found.effect == pytest.approx(stats.gmean(since) / stats.gmean(before))
    assert found.effect_low is not None
    assert found.effect_high is not None
    assert found.effect_low < 1.3 < found.effect_high


@pytest.mark.parametrize("kind", ["regression_rate", "bounded_mean", "rank", "candidate_only_excess"])
def test_too_few_pairs_give_no_interval(kind: Kind) -> None:
    metric = {"rank": "kl_forced", "bounded_mean": "cosine_similarity"}.get(kind, kind)
    none = effect_of(kind, metric, np.array([]), np.array([]))
    assert (none.since, none.effect, none.low) == (None, None, None)
    alone = effect_of(kind, metric, np.array([]), np.array([1.0]))
    assert (alone.since, alone.before, alone.effect) == (1.0, None, None)


def test_tests_are_scipys() -> None:
    table = np.array([[9, 41], [3, 197]])
    (fisher,) = describe_samples("regression_rate", flags(3, 200), flags(9, 50))
    assert fisher.p_value == pytest.approx(stats.fisher_exact(table).pvalue)
    assert fisher.statistic == pytest.approx(9 / 50 - 3 / 200)
    paired = describe_samples(
        "candidate_only_excess", np.zeros(50), np.array([1.0] * 9 + [-1.0] * 2 + [0.0] * 9)
    )
    assert paired[1].p_value == pytest.approx(stats.binomtest(9, 11, 0.5).pvalue)
    before, since = RNG.normal(size=80), RNG.normal(0.5, size=60)
    rank, ks, distance = describe_samples("rank", before, since)
    assert rank.p_value == pytest.approx(stats.mannwhitneyu(since, before).pvalue)
    assert ks.statistic == pytest.approx(stats.ks_2samp(since, before).statistic)
    assert (distance.statistic, distance.p_value) == (stats.wasserstein_distance(since, before), None)


def test_slices_are_adjusted_together() -> None:
    before, since = np.zeros(200), np.concatenate([flags(40, 50), np.zeros(50)])
    routes = ["bad", "good"] * 100 + ["bad"] * 50 + ["good"] * 50
    found = compare_slices("regression_rate", before, since, {"route": routes, "tenant": [""] * 300})
    assert [(one.slice, one.pairs, one.effect) for one in found] == [("bad", 50, 0.8), ("good", 50, 0.0)]
    p = stats.fisher_exact(np.array([[40, 10], [0, 100]])).pvalue
    # By hand: of two tests the least p is doubled, the other is 1 and stays.
    assert found[0].p_value == pytest.approx(p)
    assert found[0].p_adjusted == pytest.approx(2 * p)
    assert (found[1].p_value, found[1].p_adjusted) == (1.0, 1.0)


def test_scores_that_are_all_one_are_no_test() -> None:
    ones = np.ones(20)
    (found,) = compare_slices("bounded_mean", ones, ones, {"route": ["a"] * 40})
    assert (found.effect, found.p_value) == (0.0, 1.0)


THRESHOLD = 604_800.0 * 67


def test_the_least_rate_solves_walds_equation() -> None:
    p0, pairs = 0.002, 5_000
    least = detectable("regression_rate", p0, THRESHOLD, np.array([]), pairs)
    assert least is not None
    bets = np.array(stakes("regression_rate", p0))
    growth = (least * np.log(bets / p0) + (1 - least) * np.log((1 - bets) / (1 - p0))).max()
    assert growth * pairs == pytest.approx(math.log(len(bets) * THRESHOLD), rel=1e-6)


CASES: dict[str, tuple[Kind, float, np.ndarray]] = {
    "paired": ("candidate_only_excess", 0.005, RNG.choice([-1.0, 0.0, 1.0], p=[0.01, 0.98, 0.01], size=4000)),
    "bounded": ("bounded_mean", 0.9, RNG.beta(0.92 * 28, 0.08 * 28, 4000)),
    "rank": ("rank", 0.52, RNG.lognormal(0, 1, 4000)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_least_change_is_seen_in_about_that_many_pairs(case: str) -> None:
    kind, tolerated, before = CASES[case]
    pairs = 800
    least = detectable(kind, tolerated, THRESHOLD, before, pairs)
    assert least is not None
    delays = []
    for _ in range(60):
        x = RNG.choice(before, size=4 * pairs)
        if case == "paired":
            x = np.where(RNG.random(len(x)) < least / (1 - (before < 0).mean()), 1.0, np.where(x < 0, x, 0.0))
        elif case == "bounded":
            x = np.clip(x - least, 0, 1)
        else:
            x = np.searchsorted(np.sort(before), x * least) / len(before)
        logs = np.log(factors(kind, tolerated, x))
        s, alarm = np.zeros(logs.shape[1]), len(x)
        for number, row in enumerate(logs, start=1):
            s = np.maximum(s, 0.0) + row
            if np.exp(s).mean() >= THRESHOLD:
                alarm = number
                break
        delays.append(alarm)
    assert pairs * 0.6 < np.median(delays) < pairs * 1.4


def test_no_traffic_and_no_pairs_show_nothing() -> None:
    assert detectable("regression_rate", 0.01, THRESHOLD, np.array([]), 0) is None
    assert detectable("rank", 0.5, THRESHOLD, np.array([]), 1000) is None
    assert detectable("regression_rate", 0.01, THRESHOLD, np.array([]), 1) is None
