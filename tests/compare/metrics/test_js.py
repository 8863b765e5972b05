from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from compare.metrics.js import JsBounds, js_bounds
from compare.metrics.overlap import overlap
from tests.compare.metrics.reports import Floats, Report, positions, report, top_k

SIZE = 50


def bounds(reference: list[Report], candidate: list[Report]) -> JsBounds:
    p, q = positions(reference), positions(candidate)
    return js_bounds(p, q, overlap(p, q))


def js(p: Floats, q: Floats) -> float:
    return float(jensenshannon(p, q) ** 2)


@pytest.mark.parametrize("k", [1, 5, 10, 20])
def test_the_truth_lies_between_the_bounds(k: int) -> None:
    random = np.random.default_rng(k)
    truth, one, other = [], [], []
    for _ in range(1500):
        p = random.dirichlet(np.full(SIZE, random.choice([0.1, 0.5, 3.0]))) + 1e-15
        q = p * np.exp(random.normal(0.0, random.choice([0.01, 0.5, 3.0]), SIZE))
        if random.random() < 0.3:
            q[random.random(SIZE) < 0.6] = 0.0
            q[int(np.argmax(p))] += 0.1
        p, q = p / p.sum(), q / q.sum()
        sampled = [int(random.integers(SIZE))]
        one.append(top_k(p, k, sampled if random.random() < 0.5 else ()))
        other.append(top_k(q, k, sampled if random.random() < 0.5 else ()))
        truth.append(js(p, q))
    found, turned = bounds(one, other), bounds(other, one)
    assert np.count_nonzero(found.lower > np.array(truth) + 1e-9) == 0
    assert np.count_nonzero(found.upper < np.array(truth) - 1e-9) == 0
    assert (found.lower <= found.upper).all()
    assert found.lower == pytest.approx(turned.lower, abs=1e-12)
    assert found.upper == pytest.approx(turned.upper, abs=1e-12)
    assert found.upper.max() <= math.log(2.0)


def test_whole_distributions_are_exact() -> None:
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.3, 0.3, 0.4])
    found = bounds([top_k(p, 3)], [top_k(q, 3)])
    assert found.lower[0] == pytest.approx(js(p, q))
    assert found.upper[0] == pytest.approx(js(p, q), abs=1e-9)


def test_what_is_outside_both_lists_is_one_lump_or_apart() -> None:
    # Shared: token 1. Outside it 0.4 and 0.5.
    found = bounds([report((1, 0.6), (2, 0.3))], [report((1, 0.5), (3, 0.2))])
    assert found.lower[0] == pytest.approx(js(np.array([0.6, 0.4]), np.array([0.5, 0.5])))
    assert found.upper[0] == pytest.approx(js(np.array([0.6, 0.4, 0.0]), np.array([0.5, 0.0, 0.5])))


def test_identical_reports_have_a_lower_bound_of_exactly_zero() -> None:
    one = top_k(np.random.default_rng(1).dirichlet(np.ones(30)), 8)
    assert bounds([one], [one]).lower[0] == 0.0


def test_nothing_in_common_is_the_largest_value_there_is() -> None:
    found = bounds([report((1, 1.0), (2, 0.0))], [report((3, 1.0), (1, 0.0))])
    assert found.lower[0] <= math.log(2.0) + 1e-12
    assert found.upper[0] == pytest.approx(math.log(2.0))
    apart = bounds([report((1, 1.0), (2, 0.0))], [report((2, 1.0), (1, 0.0))])
    assert apart.lower[0] == apart.upper[0] == pytest.approx(math.log(2.0))


def test_the_order_of_alternatives_does_not_matter() -> None:
    random = np.random.default_rng(3)
    one, other = (top_k(random.dirichlet(np.ones(30)), 8) for _ in range(2))
    turned = Report(tuple(reversed(other.entries)), other.ranked)
    assert bounds([one], [turned]).upper[0] == pytest.approx(bounds([one], [other]).upper[0], abs=1e-12)
