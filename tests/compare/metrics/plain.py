"""The token metrics written out position by position in plain Python: the truth that batches are held to.

Nothing here is shared with the code under test. The two unknown masses of the KL problem are filled by
turns until they agree, each by bisection, where the code solves for their one level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ingest.tokens import Token

ROUNDING = 5e-4


@dataclass
class Side:
    """One report in normal form: token to log-probability, the bound m, the unseen mass r."""

    listed: dict[int, float]
    bound: float
    unseen: float
    is_exhausted: bool

    def p(self, token: int) -> float:
        return math.exp(self.listed[token]) if token in self.listed else 0.0


def side_of(token: Token) -> Side:
    """Read a token whose entries all have ids and are sound."""
    listed = {entry.id: entry.logprob for entry in token.top if entry.id is not None}
    ranked = token.top[: token.ranked]
    if token.id is not None and token.logprob is not None:
        listed.setdefault(token.id, token.logprob)
    is_exhausted = any(entry.logprob == -math.inf for entry in ranked)
    possible = [math.exp(entry.logprob) for entry in ranked if entry.logprob > -math.inf]
    unseen = 0.0 if is_exhausted else max(1.0 - sum(math.exp(value) for value in listed.values()), 0.0)
    return Side(listed, min(possible, default=1.0), unseen, is_exhausted)


def surprise(p: float) -> float:
    return -p * math.log(p) if 0.0 < p < 1.0 else 0.0


def entropy_bounds(side: Side, vocabulary: int) -> tuple[float, float]:
    known = sum(surprise(side.p(token)) for token in side.listed)
    lower, left, cap = known, side.unseen, min(side.bound, side.unseen)
    if cap > 0.0:
        whole = math.floor(left / cap)
        lower += whole * surprise(cap) + surprise(max(left - whole * cap, 0.0))
    others = vocabulary - sum(value > -math.inf for value in side.listed.values())
    upper = known + (surprise(left) + left * math.log(others) if others > 0 else 0.0)
    return lower, upper


def filled(weights: Sequence[float], caps: Sequence[float], total: float) -> list[float]:
    """Spread `total` in proportion to weights under caps, all of it if there is room."""
    if sum(caps[i] for i, weight in enumerate(weights) if weight > 0.0) <= total:
        return [cap if weight > 0.0 else 0.0 for weight, cap in zip(weights, caps, strict=True)]
    low, high = 0.0, 1.0
    while sum(min(c, high * w) for w, c in zip(weights, caps, strict=True)) < total:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if sum(min(c, middle * w) for w, c in zip(weights, caps, strict=True)) < total:
            low = middle
        else:
            high = middle
    return [min(c, high * w) for w, c in zip(weights, caps, strict=True)]


def relative(a: float, b: float) -> float:
    return a * math.log(a / b) if a > 0.0 else 0.0


@dataclass
class KlProblem:
    """What is exact, and the tokens on one side only with their caps."""

    exact: float
    only_p: list[float]
    only_q: list[float]
    r_p: float
    r_q: float
    u: float
    v: float


def kl_problem(reference: Side, candidate: Side) -> KlProblem | None:
    """Set the problem up; None where the KL is infinite. r_Q must be over rounding."""
    both = reference.listed.keys() & candidate.listed.keys()
    if any(reference.p(token) > 0.0 and candidate.listed[token] == -math.inf for token in both):
        return None
    exact = sum(
        reference.p(token) * (reference.listed[token] - candidate.listed[token])
        for token in both
        if reference.p(token) > 0.0
    )
    only_p = [reference.p(token) for token in reference.listed if token not in both and reference.p(token)]
    only_q = [candidate.p(token) for token in candidate.listed if token not in both and candidate.p(token)]
    if candidate.is_exhausted and (only_p or reference.unseen - reference.bound * len(only_q) > ROUNDING):
        return None
    return KlProblem(
        exact, only_p, only_q, reference.unseen, candidate.unseen, candidate.bound, reference.bound
    )


def kl_lower(reference: Side, candidate: Side) -> float | None:
    """The least KL that both reports allow, by filling the two sides in turns."""
    given = kl_problem(reference, candidate)
    if given is None:
        return None
    u, v = [given.u] * len(given.only_p), [given.v] * len(given.only_q)
    # The bucket comes last and has no cap of its own.
    t, s = given.r_p, given.r_q
    p_b: list[float] = [0.0] * len(given.only_q)
    q_a: list[float] = [0.0] * len(given.only_p)
    for _ in range(3000):
        *q_a, s = filled([*given.only_p, t], [*u, math.inf], given.r_q)
        *p_b, new = filled([*given.only_q, s], [*v, math.inf], given.r_p)
        if abs(new - t) < 1e-15:
            break
        t = new
    rest = sum(map(relative, given.only_p, q_a)) + sum(map(relative, p_b, given.only_q))
    return max(given.exact + rest + (relative(t, s) if s > 0.0 else 0.0), 0.0)


def kl_by_level(reference: Side, candidate: Side) -> float | None:
    """The same by bisection of the one level that both sides share: what plain Python does fast."""
    given = kl_problem(reference, candidate)
    if given is None:
        return None

    def sides(level: float) -> tuple[list[float], list[float], float, float]:
        q_a = [min(given.u, level * p) for p in given.only_p]
        p_b = [min(given.v, q / level) for q in given.only_q]
        return q_a, p_b, given.r_q - sum(q_a), given.r_p - sum(p_b)

    low, high = 1e-6, 1e6
    for _ in range(50):
        middle = math.sqrt(low * high)
        _, _, s, t = sides(middle)
        low, high = (middle, high) if s > middle * t else (low, middle)
    q_a, p_b, s, t = sides(high)
    if s <= 0.0 or t <= 0.0:
        return kl_lower(reference, candidate)
    rest = sum(map(relative, given.only_p, q_a)) + sum(map(relative, p_b, given.only_q))
    return max(given.exact + rest + relative(t, s), 0.0)


def js_bounds(reference: Side, candidate: Side) -> tuple[float, float]:
    """The lumped Jensen-Shannon divergence, and that with the entropy of the lump's halves."""
    both = reference.listed.keys() & candidate.listed.keys()
    masses = [(reference.p(token), candidate.p(token)) for token in both]
    r_p = reference.unseen + sum(reference.p(token) for token in reference.listed if token not in both)
    r_q = candidate.unseen + sum(candidate.p(token) for token in candidate.listed if token not in both)
    lower = 0.0
    for p, q in [*masses, (r_p, r_q)]:
        lower += (relative(p, (p + q) / 2.0) + relative(q, (p + q) / 2.0)) / 2.0
    share = r_p / (r_p + r_q) if r_p + r_q > 0.0 else 0.0
    upper = lower + (r_p + r_q) / 2.0 * (surprise(share) + surprise(1.0 - share))
    return max(lower, 0.0), upper


def agrees(reference: Side, candidate: Side) -> bool:
    best = [
        {t for t, value in s.listed.items() if value == max(s.listed.values())}
        for s in (reference, candidate)
    ]
    return bool(best[0] & best[1])


def change(token: int, reference: Side, candidate: Side) -> float:
    p = reference.p(token)
    if token in candidate.listed:
        return candidate.p(token) - p
    return min(p, candidate.bound, candidate.unseen) - p
