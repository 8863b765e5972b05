from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import entropy

from compare.metrics.entropy import entropy_lower, entropy_upper
from tests.compare.metrics.reports import Floats, positions, report, top_k


def test_closed_form() -> None:
    # Unseen 0.35, at most 0.15 a token: two of 0.15 and one of 0.05; or spread over 98 tokens.
    found = positions([report((1, 0.5), (2, 0.15))])
    known = [0.5, 0.15]
    assert entropy_lower(found)[0] == pytest.approx(entropy([*known, 0.15, 0.15, 0.05]))
    assert entropy_upper(found, 100)[0] == pytest.approx(entropy([*known, *[0.35 / 98] * 98]))


def test_impossible_entries_end_the_distribution() -> None:
    found = positions([report((1, 0.6), (2, 0.4), (3, 0.0))])
    assert entropy_lower(found)[0] == pytest.approx(entropy([0.6, 0.4]))
    assert entropy_upper(found, 100)[0] == pytest.approx(entropy([0.6, 0.4]))


def test_a_flat_distribution_passes_the_cap_of_a_lumped_tail() -> None:
    found = positions([top_k(np.full(50_000, 1 / 50_000), 20)])
    assert entropy_lower(found)[0] == pytest.approx(math.log(50_000))
    assert entropy_upper(found, 50_000)[0] == pytest.approx(math.log(50_000))


def test_the_whole_vocabulary_is_exact() -> None:
    p = np.random.default_rng(5).dirichlet(np.ones(12))
    found = positions([top_k(p, 12)])
    assert entropy_lower(found)[0] == pytest.approx(entropy(p))
    assert entropy_upper(found, 12)[0] == pytest.approx(entropy(p))


@pytest.mark.parametrize("k", [1, 5, 10, 20])
def test_bounds_hold_on_random_distributions(k: int) -> None:
    random = np.random.default_rng(k)
    whole: list[Floats] = []
    reports = []
    for _ in range(1500):
        size = 64
        p = random.dirichlet(np.full(size, random.choice([0.05, 0.3, 1.0, 10.0]))) + 1e-15
        if random.random() < 0.3:
            p[random.random(size) < 0.7] = 0.0
            p[0] += 1e-3
        p /= p.sum()
        whole.append(p)
        reports.append(top_k(p, k, random.choice(size, 1) if random.random() < 0.5 else ()))
    found = positions(reports)
    truth = np.array([entropy(p) for p in whole])
    lower, upper = entropy_lower(found), entropy_upper(found, 64)
    assert found.is_scored.all()
    assert np.count_nonzero(lower > truth + 1e-12) == 0
    assert np.count_nonzero(upper < truth - 1e-12) == 0
    assert (lower >= 0.0).all()


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_vocabulary_that_cannot_hold_the_unseen_mass_gives_no_upper_bound(size: int) -> None:
    # Unseen 0.35, at most 0.15 a token: at least three more tokens than the two that are listed.
    found = positions([report((1, 0.5), (2, 0.15))])
    assert np.isinf(entropy_upper(found, size)[0])
    assert entropy_upper(found, 5)[0] >= entropy_lower(found)[0]


def test_a_list_longer_than_the_vocabulary_gives_no_upper_bound() -> None:
    found = positions([report((1, 0.5), (2, 0.3), (3, 0.2)), report((1, 0.5), (2, 0.5))])
    assert np.isinf(entropy_upper(found, 2)).tolist() == [True, False]


def test_what_rounding_leaves_unseen_of_the_whole_vocabulary_is_no_contradiction() -> None:
    # Two tokens are all there are; a server's 32 bits leave 3e-4.
    found = positions([report((1, 0.6), (2, 0.3997))])
    assert (
        entropy_upper(found, 2)[0] == entropy_lower(found)[0] == pytest.approx(entropy([0.6, 0.4]), abs=4e-3)
    )


@pytest.mark.parametrize("k", [1, 5, 20])
def test_the_bounds_are_in_order_whatever_the_stated_vocabulary(k: int) -> None:
    random = np.random.default_rng(40 + k)
    reports = [
        top_k(random.dirichlet(np.full(60, random.choice([0.05, 1.0, 10.0]))) + 1e-15, k) for _ in range(1000)
    ]
    found = positions(reports)
    size = random.integers(1, 70, len(reports))
    lower, upper = entropy_lower(found), entropy_upper(found, size)
    assert found.is_scored.all()
    assert np.count_nonzero(~(upper >= lower)) == 0
    # No bound: just where as many tokens as are left, each as likely as the last ranked one, are too few.
    ranked = np.array([[math.exp(item.logprob) for item in one.entries] for one in reports])
    unseen, last = 1.0 - ranked.sum(axis=1), ranked.min(axis=1)
    is_short = (size < k) | (unseen > np.maximum(size - k, 0) * last + 5e-4)
    assert (np.isinf(upper) == is_short).all()
    assert 100 < is_short.sum() < 900
