from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import entropy

from compare.metrics.distribution import ROUNDING_MASS
from compare.metrics.kl import KlBounds, kl_lower
from compare.metrics.overlap import overlap
from tests.compare.metrics.reports import Floats, Report, positions, report, top_k

SIZE = 60


def bounds(reference: list[Report], candidate: list[Report]) -> KlBounds:
    p, q = positions(reference), positions(candidate)
    return kl_lower(p, q, overlap(p, q))


def known(one: Report) -> dict[int, float]:
    return {item.id: math.exp(item.logprob) for item in one.entries if item.id is not None}


def lumped(reference: Report, candidate: Report) -> float:
    """Both lists' common tokens, and one bucket for all else, written out.

    Where the candidate's unseen mass is no more than rounding, its probabilities may be too large by a factor
    1 + e; tried are 200 sizes of e.
    """
    p, q = known(reference), known(candidate)
    both = [i for i in p if i in q]
    exact = sum(p[i] * math.log(p[i] / q[i]) for i in both if p[i] > 0.0)
    tail_p, tail_q = 1.0 - sum(p[i] for i in both), 1.0 - sum(q[i] for i in both)
    if tail_p <= 1e-12:
        return max(exact, 0.0)
    is_exhausted = any(item.logprob == -math.inf for item in candidate.entries[: candidate.ranked])
    most = 0.0 if is_exhausted else max(ROUNDING_MASS - (1.0 - sum(q.values())), 0.0)
    sizes = np.linspace(0.0, most, 200 if most else 1)
    return max(exact + min(tail_p * math.log(tail_p / (tail_q + e)) + math.log1p(e) for e in sizes), 0.0)


def solved(reference: Report, candidate: Report) -> float:
    """Minimise over the unknowns with scipy, from the problem's statement alone.

    The unknowns are the candidate's mass on the reference's own tokens, the reference's on the
    candidate's own, and what is left on each side.
    """
    p, q = known(reference), known(candidate)
    both = [i for i in p if i in q]
    only_p, only_q = [i for i in p if i not in q], [i for i in q if i not in p]
    r_p, r_q = 1.0 - sum(p.values()), 1.0 - sum(q.values())
    most_q, most_p = min(p_k(candidate), r_q), min(p_k(reference), r_p)
    a, b = np.array([p[i] for i in only_p]), np.array([q[i] for i in only_q])
    n = len(a)
    tiny = 1e-12

    def objective(x: Floats) -> float:
        q_a, p_b, s, t = x[:n], x[n:-2], x[-2], x[-1]
        return float((a * np.log(a / q_a)).sum() + (p_b * np.log(p_b / b)).sum() + t * math.log(t / s))

    start = np.concatenate(
        [np.full(n, min(most_q, r_q / (n + 1))), np.full(len(b), min(most_p, r_p / (len(b) + 1))), [0, 0]]
    )
    start[-2], start[-1] = r_q - start[:n].sum(), r_p - start[n:-2].sum()
    sums: Any = [
        {"type": "eq", "fun": lambda x: x[:n].sum() + x[-2] - r_q},
        {"type": "eq", "fun": lambda x: x[n:-2].sum() + x[-1] - r_p},
    ]
    best = minimize(
        objective,
        np.maximum(start, tiny),
        method="SLSQP",
        bounds=[*[(tiny, most_q)] * n, *[(tiny, most_p)] * len(b), (tiny, r_q), (tiny, r_p)],
        constraints=sums,
        options={"maxiter": 500, "ftol": 1e-13},
    )
    exact = sum(p[i] * math.log(p[i] / q[i]) for i in both)
    return max(exact + float(best.fun), 0.0)


def p_k(one: Report) -> float:
    return min(math.exp(item.logprob) for item in one.entries[: one.ranked])


def random_pair(random: np.random.Generator, size: int) -> tuple[Floats, Floats]:
    """Two distributions: near each other, far, or unrelated; some with impossible tokens."""
    p = random.dirichlet(np.full(size, random.choice([0.1, 0.5, 1.0, 3.0]))) + 1e-15
    if random.random() < 0.7:
        q = p * np.exp(random.normal(0.0, random.choice([0.05, 0.5, 2.0]), size))
    else:
        q = random.dirichlet(np.full(size, random.choice([0.1, 0.5, 1.0, 3.0]))) + 1e-15
    if random.random() < 0.25:
        gone = random.random(size) < 0.6
        gone[np.argmax(p)] = False
        p[gone] = 0.0
        if random.random() < 0.5:
            q[gone] = 0.0
    return p / p.sum(), q / q.sum()


@pytest.mark.parametrize("k", [1, 5, 10, 20])
def test_never_over_the_truth_and_never_under_the_lumped_tail(k: int) -> None:
    random = np.random.default_rng(100 + k)
    truth, coarse, references, candidates = [], [], [], []
    for _ in range(2000):
        p, q = random_pair(random, SIZE)
        sampled = [int(random.integers(SIZE))]
        references.append(top_k(p, k, sampled if random.random() < 0.5 else ()))
        candidates.append(top_k(q, k, sampled if random.random() < 0.5 else ()))
        truth.append(float(entropy(p, q)))
        coarse.append(lumped(references[-1], candidates[-1]))
    found = bounds(references, candidates)
    is_sure = positions(candidates).unseen >= ROUNDING_MASS
    assert set(found.reasons) == {None}
    assert (found.nats >= 0.0).all()
    assert np.count_nonzero(found.nats > np.array(truth) + 1e-9) == 0
    # The least of the sizes tried is a little over the least of all.
    assert np.count_nonzero(found.nats < np.array(coarse) - np.where(is_sure, 1e-9, 1e-6)) == 0
    assert is_sure.mean() > 0.5


def test_against_a_general_convex_solver() -> None:
    random = np.random.default_rng(7)
    references: list[Report] = []
    candidates: list[Report] = []
    expected: list[float] = []
    while len(expected) < 150:
        size, k = int(random.integers(5, 16)), int(random.integers(1, 5))
        p, q = (random.dirichlet(np.full(size, random.choice([0.5, 1.0, 3.0]))) for _ in range(2))
        extra = [int(random.integers(size))] if random.random() < 0.5 else []
        one, other = top_k(p, k, extra), top_k(q, k)
        if min(1.0 - sum(known(one).values()), 1.0 - sum(known(other).values())) < 0.02:
            continue
        references.append(one)
        candidates.append(other)
        expected.append(solved(one, other))
    found = bounds(references, candidates).nats
    assert np.abs(found - np.array(expected)).max() < 2e-5


def test_against_a_grid_where_the_caps_bind() -> None:
    reference, candidate = report((1, 0.6), (2, 0.25)), report((1, 0.5), (3, 0.1))
    # Unknown: the candidate's mass on 2 (at most 0.1 of 0.4), the reference's on 3 (at most 0.15).
    best = min(
        0.25 * math.log(0.25 / q_2) + p_3 * math.log(p_3 / 0.1) + t * math.log(t / (0.4 - q_2))
        for q_2, p_3 in itertools.product(np.linspace(1e-4, 0.1, 1000), np.linspace(1e-6, 0.15 - 1e-6, 1000))
        for t in [0.15 - p_3]
    )
    expected = 0.6 * math.log(0.6 / 0.5) + best
    assert bounds([reference], [candidate]).nats[0] == pytest.approx(expected, abs=1e-5)


def test_all_unseen_mass_fits_under_the_caps() -> None:
    # k = 1 and different tokens: at best the candidate's whole rest is on 1, the reference's on 2.
    found = bounds([report((1, 0.8))], [report((2, 0.7))])
    assert found.nats[0] == pytest.approx(0.8 * math.log(0.8 / 0.3) + 0.2 * math.log(0.2 / 0.7))


def test_equal_reports_give_zero_and_order_does_not_matter() -> None:
    random = np.random.default_rng(3)
    p, q = random.dirichlet(np.ones(30)), random.dirichlet(np.ones(30))
    one, other = top_k(p, 8), top_k(q, 8)
    assert bounds([one], [one]).nats[0] == 0.0
    turned = Report(tuple(reversed(other.entries)), other.ranked)
    assert bounds([one], [turned]).nats[0] == pytest.approx(bounds([one], [other]).nats[0], abs=1e-12)


@pytest.mark.parametrize(
    ("reference", "candidate", "reason"),
    [
        # The candidate's list names the token impossible; or ends with an impossible one, and lacks it.
        (report((1, 0.7), (2, 0.3)), report((1, 1.0), (2, 0.0)), "infinite"),
        (report((1, 0.7), (2, 0.3)), report((1, 0.9), (3, 0.1), (4, 0.0)), "infinite"),
        # Mass that the reference does not show cannot all lie on the candidate's own token.
        (report((1, 0.5), (2, 0.1)), report((1, 0.6), (2, 0.3), (3, 0.1), (4, 0.0)), "infinite"),
        # It can: at most 0.1 each on two tokens.
        (report((1, 0.7), (2, 0.1)), report((1, 0.6), (2, 0.2), (3, 0.1), (5, 0.1), (4, 0.0)), None),
        (report((1, 1.0), (2, 0.0)), report((1, 0.9), (2, 0.1)), None),
    ],
)
def test_infinite_is_said(reference: Report, candidate: Report, reason: str | None) -> None:
    found = bounds([reference], [candidate])
    assert found.reasons == (reason,)
    assert np.isfinite(found.nats).all()


def test_a_list_that_sums_to_one_by_rounding_is_not_certain() -> None:
    # Truth: the candidate has 3e-4 beyond its list; its server's sum was too small by as much.
    p, q = np.array([0.9, 0.06, 0.04]), np.array([0.9997, 2e-4, 1e-4])
    swollen = report((0, 1.0))
    found = bounds([top_k(p, 3)], [swollen])
    assert found.reasons == (None,)
    assert 0.0 < found.nats[0] <= entropy(p, q)


def test_probabilities_below_the_smallest_float_are_still_numbers() -> None:
    reference = report((1, 0.5), (2, 0.5))
    top = list(report((1, 1.0)).entries)
    candidate = Report((*top, type(top[0])("t2", -900.0, None, 2)), 2)
    assert bounds([reference], [candidate]).nats[0] == pytest.approx(0.5 * math.log(0.5) * 2 + 450.0)
