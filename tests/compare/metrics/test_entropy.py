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
