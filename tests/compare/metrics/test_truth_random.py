"""The bounds against the truth of thousands of random distributions, of 10 to 200,000 tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import scipy.special
import scipy.stats
from numpy.typing import NDArray

from bench.lumped import allowance_of, lumped
from compare.metrics.distribution import Positions, normalise
from compare.metrics.entropy import entropy_lower, entropy_upper
from compare.metrics.js import js_bounds
from compare.metrics.kl import kl_lower
from compare.metrics.overlap import overlap
from ingest.tokens import NO_ID, NO_KEY, TokenColumns

COUNT = 500
"""Of each k."""
TOLERANCE = 1e-9
"""Nats: 64-bit sums over 200,000 terms differ by less."""

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


class Listed(NamedTuple):
    """A report of one distribution: the first `ranked` tokens are its likeliest ones."""

    ids: Ids
    logprob: Floats
    ranked: int


def listed(p: Floats, k: int, appended: Sequence[int]) -> Listed:
    best = np.argpartition(-p, k - 1)[:k] if k < len(p) else np.arange(len(p))
    best = best[np.argsort(-p[best], kind="stable")]
    ids = np.array([*best, *(token for token in set(appended) if token not in best)], dtype=np.int64)
    with np.errstate(divide="ignore"):
        return Listed(ids, np.log(p[ids]), len(best))


def positions(reports: Sequence[Listed]) -> Positions:
    """All lists side by side, of whatever lengths."""
    ids = np.concatenate([one.ids for one in reports])
    count = len(reports)
    return normalise(
        TokenColumns(
            logprob=np.full(count, np.nan),
            id=np.full(count, NO_ID, dtype=np.int64),
            key=np.full(count, NO_KEY, dtype=np.uint64),
            ranked=np.array([one.ranked for one in reports]),
            start=np.cumsum([0, *(len(one.ids) for one in reports)]),
            top_logprob=np.concatenate([one.logprob for one in reports]),
            top_id=ids,
            top_key=np.full(len(ids), NO_KEY, dtype=np.uint64),
        )
    )


def softmax(logits: Floats) -> Floats:
    weights: Floats = np.exp(logits - logits.max())
    weights /= weights.sum()
    return weights


def pair_of(random: np.random.Generator) -> tuple[Floats, Floats]:
    """A reference and a candidate: peaked, flat or heavy-tailed; near each other, apart or disordered."""
    size = int(np.exp(random.uniform(np.log(10), np.log(200_001))))
    logits = random.normal(0.0, random.choice([0.3, 2.0, 6.0]), size)
    if random.random() < 0.3:
        logits = -random.choice([0.8, 1.2, 2.0]) * np.log(np.arange(1.0, size + 1.0))
    kind = random.integers(4)
    other = logits + random.normal(0.0, (0.01, 0.4, 3.0, 0.3)[kind], size)
    if kind == 3:
        # The likeliest tokens of each side are unlikely on the other: nothing but one-sided tokens.
        head = np.argsort(-logits)[: random.integers(1, 41)]
        other[head] -= 12.0
        other[random.choice(size, len(head))] += logits.max() - logits.min() + 2.0
    p, q = softmax(logits), softmax(other)
    if random.random() < 0.25:
        # A mask leaves few tokens possible, on both sides or on the candidate alone.
        kept = np.zeros(size, dtype=np.bool_)
        kept[np.argsort(-q)[: random.integers(1, min(40, size) + 1)]] = True
        kept[int(np.argmax(p))] = True
        q = np.where(kept, q, 0.0)
        q /= q.sum()
        if random.random() < 0.7:
            p = np.where(kept, p, 0.0)
            p /= p.sum()
    return p, q


@dataclass
class Drawn:
    """Reports of both sides, and what is true of the distributions behind them."""

    reference: list[Listed] = field(default_factory=list)
    candidate: list[Listed] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    entropy: list[tuple[float, float]] = field(default_factory=list)
    kl: list[float] = field(default_factory=list)
    lumped: list[float] = field(default_factory=list)
    """With our allowance for a server's rounding."""
    js: list[float] = field(default_factory=list)


@cache
def draw(k: int) -> Drawn:
    random = np.random.default_rng(7000 + k)
    drawn = Drawn()
    for _ in range(COUNT):
        p, q = pair_of(random)
        sampled = [int(random.choice(len(p), p=p))] if random.random() < 0.25 else []
        if random.random() < 0.1:
            sampled.append(int(random.integers(len(p))))  # it may be impossible
        one = listed(p, k, sampled)
        other = listed(q, k, sampled if random.random() < 0.8 else ())
        drawn.reference.append(one)
        drawn.candidate.append(other)
        drawn.size.append(len(p))
        drawn.entropy.append((float(scipy.stats.entropy(p)), float(scipy.stats.entropy(q))))
        drawn.kl.append(float(scipy.special.rel_entr(p, q).sum()))
        (allowance,) = allowance_of(positions([other]))
        drawn.lumped.append(lumped(p, q, np.intersect1d(one.ids, other.ids), allowance))
        middle = (p + q) / 2.0
        halves = scipy.special.rel_entr(p, middle) + scipy.special.rel_entr(q, middle)
        drawn.js.append(float(halves.sum()) / 2.0)
    return drawn


@pytest.mark.parametrize("k", [1, 5, 10, 20])
def test_no_bound_is_broken(k: int) -> None:
    drawn = draw(k)
    sides = positions(drawn.reference), positions(drawn.candidate)
    size, kl_truth, js_truth = np.array(drawn.size), np.array(drawn.kl), np.array(drawn.js)
    for side, truth in zip(sides, np.array(drawn.entropy).T, strict=True):
        assert set(side.reasons) == {None}
        assert np.count_nonzero(~(entropy_lower(side) <= truth + TOLERANCE)) == 0
        assert np.count_nonzero(~(entropy_upper(side, size) >= truth - TOLERANCE)) == 0
    shared = overlap(*sides)
    kl, js = kl_lower(*sides, shared), js_bounds(*sides, shared)
    is_infinite = np.array([reason == "infinite" for reason in kl.reasons])
    assert set(kl.reasons) == {None, "infinite"}
    assert np.isinf(kl_truth[is_infinite]).all()
    assert np.count_nonzero(~is_infinite) > COUNT // 2
    assert (kl.nats >= 0.0).all()
    assert np.count_nonzero(~(kl.nats <= kl_truth + TOLERANCE)) == 0
    assert np.count_nonzero(~(kl.nats >= np.array(drawn.lumped) - TOLERANCE) & ~is_infinite) == 0
    assert np.count_nonzero(~(js.lower <= js_truth + TOLERANCE)) == 0
    assert np.count_nonzero(~(js.upper >= js_truth - TOLERANCE)) == 0


def test_what_is_drawn_has_every_kind_of_report() -> None:
    drawn = draw(5)
    reports = [*drawn.reference, *drawn.candidate]
    assert min(drawn.size) < 20 and max(drawn.size) > 150_000
    assert sum(len(one.ids) > one.ranked for one in reports) > 100
    assert sum(np.isneginf(one.logprob).any() for one in reports) > 25
    apart = sum(
        not np.isin(a.ids, b.ids).any() for a, b in zip(drawn.reference, drawn.candidate, strict=True)
    )
    assert apart > 25
