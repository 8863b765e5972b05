"""The KL bound against the lumped-tail bound, position by position, on exact and on rounded probabilities.

The distributions are random, and a server is acted that adds up its exponentials in 32 bits, the largest
first, as llama.cpp does: the smallest ones are lost, so that its probabilities sum to over 1 and what they
leave unseen is too little.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import scipy.special
from numpy.typing import NDArray

from bench.lumped import allowance_of, lumped
from bench.truth import cut, shared
from compare.metrics.distribution import ROUNDING_MASS, Positions
from compare.metrics.kl import kl_lower
from compare.metrics.overlap import overlap

LISTS = (1, 5, 10, 20)
PAIRS = 250
TOLERANCE = 1e-9
"""Nats, of sums in 64 bits."""
ROUNDED = 2e-6
"""Nats, of probabilities that a server rounds to 32 bits."""

Floats = NDArray[np.float64]


def served(p: Floats) -> Floats:
    """The log-probabilities that a server reports of probabilities (V,), its sums made in 32 bits."""
    weights = np.exp((np.log(p) - np.log(p.max())).astype(np.float32))
    total = np.cumsum(np.sort(weights)[::-1], dtype=np.float32)[-1]
    reported: Floats = np.log(np.maximum(weights / total, np.float32(1e-45)).astype(np.float64))
    return reported


def softmax(logits: Floats) -> Floats:
    weights: Floats = np.exp(logits - logits.max())
    weights /= weights.sum()
    return weights


def drawn(random: np.random.Generator) -> tuple[Floats, Floats]:
    """Reference and candidate of 25 to 50,000 tokens, near each other, apart, or parted at the top."""
    size = int(np.exp(random.uniform(np.log(25), np.log(50_000))))
    logits = random.normal(0.0, random.choice([1.0, 2.5, 6.0]), size)
    if random.random() < 0.3:
        logits = -random.choice([1.2, 2.0, 4.0]) * np.log(np.arange(1.0, size + 1.0))
    other = logits + random.normal(0.0, random.choice([0.01, 0.4, 3.0]), size)
    if random.random() < 0.3:
        head = np.argsort(-logits)[1 : random.integers(2, 20)]
        other[head] -= 9.0
    return softmax(logits), softmax(other)


@dataclass
class Seen:
    """Of one k: what is true, our bound, the lumped one, and the lumped one with our allowance, (n,) each."""

    truth: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    allowing: list[float] = field(default_factory=list)
    allowance: list[float] = field(default_factory=list)

    def add(self, p: Floats, q: Floats, sides: tuple[Positions, Positions], truth: float) -> None:
        found = kl_lower(*sides, overlap(*sides))
        assert found.reasons == (None,)
        both, (allowance,) = shared(sides), allowance_of(sides[1])
        self.truth.append(truth)
        self.ours.append(float(found.nats[0]))
        self.plain.append(lumped(p, q, both))
        self.allowing.append(lumped(p, q, both, allowance))
        self.allowance.append(allowance)


@pytest.fixture(scope="module")
def seen() -> dict[tuple[str, int], Seen]:
    random = np.random.default_rng(23)
    found = {(kind, k): Seen() for kind in ("exact", "served") for k in LISTS}
    for _ in range(PAIRS):
        p, q = drawn(random)
        truth = float(scipy.special.rel_entr(p, q).sum())
        logs = {"exact": (np.log(p), np.log(q)), "served": (served(p), served(q))}
        for kind, (log_p, log_q) in logs.items():
            assert abs(np.exp(log_q).sum() - 1.0) < ROUNDING_MASS
            for k in LISTS:
                sides = cut(log_p, k), cut(log_q, k)
                found[kind, k].add(np.exp(log_p), np.exp(log_q), sides, truth)
    return found


@pytest.mark.parametrize("k", LISTS)
@pytest.mark.parametrize("kind", ["exact", "served"])
def test_never_under_the_lumped_tail_and_never_over_the_truth(
    seen: dict[tuple[str, int], Seen], kind: str, k: int
) -> None:
    one = seen[kind, k]
    ours, truth = np.array(one.ours), np.array(one.truth)
    assert np.count_nonzero(~(ours >= np.array(one.allowing) - TOLERANCE)) == 0
    assert np.count_nonzero(~(ours <= truth + (TOLERANCE if kind == "exact" else ROUNDED))) == 0
    assert ours.sum() >= np.array(one.plain)[np.array(one.plain) <= truth + ROUNDED].sum()
    # Where there is no allowance, it is the lumped bound itself that is not undercut.
    is_plain = np.array(one.allowance) == 0.0
    assert is_plain.mean() > 0.4
    assert np.count_nonzero(~(ours >= np.array(one.plain) - TOLERANCE)[is_plain]) == 0


def test_of_a_servers_own_numbers_the_lumped_bound_without_an_allowance_is_none(
    seen: dict[tuple[str, int], Seen],
) -> None:
    passed = [np.array(seen["served", k].plain) - np.array(seen["served", k].truth) for k in LISTS]
    assert max(float(by.max()) for by in passed) > 0.01
    exact = [np.array(seen["exact", k].plain) - np.array(seen["exact", k].truth) for k in LISTS]
    assert max(float(by.max()) for by in exact) <= TOLERANCE


def test_the_lumped_bound_with_an_allowance_is_the_least_over_its_size() -> None:
    random = np.random.default_rng(5)
    for _ in range(300):
        p, q = random.dirichlet(np.ones(8)), random.dirichlet(np.ones(8))
        both = np.arange(int(random.integers(1, 8)))
        allowance = float(random.choice([0.0, 5e-4, 0.1]))
        t, s = p[both].sum(), q[both].sum()
        exact = scipy.special.rel_entr(p[both], q[both]).sum()
        # Every probability of the candidate is too large by the factor 1 + e.
        grid = np.linspace(0.0, allowance, 2001)
        values = exact + t * np.log1p(grid) + scipy.special.rel_entr(1.0 - t, 1.0 - s / (1.0 + grid))
        assert lumped(p, q, both, allowance) == pytest.approx(values.min(), abs=1e-7)
