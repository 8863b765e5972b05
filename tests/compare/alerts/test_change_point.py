"""The change-point estimate against brute force and against simulated changes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import betaln

from compare.alerts.change_point import LOG_RATIO, Floats, change_point, classes_of

BEFORE = 1_000
Make = Callable[[np.random.Generator], Floats]


def test_equals_brute_force_over_all_starts() -> None:
    rng = np.random.default_rng(1)
    faulty = np.concatenate([rng.random(60) < 0.1, rng.random(40) < 0.6]).astype(np.int64)

    def side(x: np.ndarray) -> float:
        # The beta-binomial by scipy's own beta function: Jeffreys' prior, integrated.
        return float(betaln(x.sum() + 0.5, len(x) - x.sum() + 0.5))

    scores = {k: side(faulty[:k]) + side(faulty[k:]) for k in range(1, 100)}
    best = max(scores, key=lambda k: scores[k])
    inside = [k for k, score in scores.items() if score >= scores[best] - LOG_RATIO]
    found = change_point(faulty)
    assert (found.index, found.earliest, found.latest, found.size) == (
        best,
        inside[0],
        inside[-1],
        len(inside),
    )


def test_a_clean_step_by_hand() -> None:
    # 200 good, 20 bad. A start one pair early puts a good one among the bad: by hand, with B(a, b) of the
    # two sides, l falls by ln[B(.5, 200.5) B(20.5, .5) / (B(.5, 199.5) B(20.5, 1.5))].
    found = change_point(np.array([0] * 200 + [1] * 20))
    fall = betaln(0.5, 200.5) + betaln(20.5, 0.5) - betaln(0.5, 199.5) - betaln(20.5, 1.5)
    assert found.index == 200
    assert (found.earliest < 200) == (fall <= LOG_RATIO)
    assert found.earliest <= 200 <= found.latest
    assert math.isclose(LOG_RATIO, 3.676, abs_tol=1e-3)


def test_scores_that_pile_up_at_a_bound_keep_it_as_a_class() -> None:
    assert classes_of(np.array([1.0] * 90 + [0.2, 0.4, 0.6, 0.8] * 3)).max() >= 1
    ones = classes_of(np.ones(50))
    assert set(ones.tolist()) == {0}


def test_one_pair_has_no_change() -> None:
    with pytest.raises(ValueError, match="of 1 pairs"):
        change_point(np.array([1]))


def _beta(rng: np.random.Generator, mean: float, n: int) -> Floats:
    size = mean * (1 - mean) / 0.05**2 - 1
    return rng.beta(mean * size, (1 - mean) * size, n)


def _ones(rng: np.random.Generator, share: float, n: int) -> Floats:
    return np.where(rng.random(n) < share, 1.0, rng.random(n))


CASES: dict[str, Make] = {
    "rate 0.2 to 5 %": lambda r: np.concatenate([r.random(BEFORE) < 0.002, r.random(100) < 0.05]).astype(
        float
    ),
    "rate 2 to 50 %": lambda r: np.concatenate([r.random(BEFORE) < 0.02, r.random(15) < 0.5]).astype(float),
    "paired": lambda r: np.concatenate(
        [r.choice(3, p=[0.01, 0.98, 0.01], size=BEFORE), r.choice(3, p=[0.01, 0.92, 0.07], size=150)]
    ).astype(float),
    "similarity 0.92 to 0.85": lambda r: np.concatenate([_beta(r, 0.92, BEFORE), _beta(r, 0.85, 40)]),
    "mostly 1": lambda r: np.concatenate([_ones(r, 0.97, BEFORE), _ones(r, 0.8, 80)]),
    "KL times 1.5": lambda r: np.concatenate([r.lognormal(0, 1, BEFORE), r.lognormal(math.log(1.5), 1, 350)]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_set_holds_the_true_start(case: str) -> None:
    rng = np.random.default_rng(7)
    runs, inside = 300, 0
    for _ in range(runs):
        x = CASES[case](rng)
        found = change_point(x.astype(np.int64) if "rate" in case or case == "paired" else classes_of(x))
        inside += found.earliest <= BEFORE <= found.latest
    # 95 % of 300 less two standard errors of the count.
    assert inside >= 300 * 0.95 - 2 * math.sqrt(300 * 0.95 * 0.05), inside
