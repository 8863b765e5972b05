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


def kl_lower(reference: Side, candidate: Side, turns: int = 3000) -> float | None:
    """The least KL that both reports allow, None where it is infinite; r_Q must be over rounding."""
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
    u, v = [candidate.bound] * len(only_p), [reference.bound] * len(only_q)
    # The bucket comes last and has no cap of its own.
    t, s = reference.unseen, candidate.unseen
    p_b: list[float] = [0.0] * len(only_q)
    q_a: list[float] = [0.0] * len(only_p)
    for _ in range(turns):
        *q_a, s = filled([*only_p, t], [*u, math.inf], candidate.unseen)
        *p_b, new = filled([*only_q, s], [*v, math.inf], reference.unseen)
        if abs(new - t) < 1e-15:
            break
        t = new
    rest = sum(map(relative, only_p, q_a)) + sum(map(relative, p_b, only_q))
    return max(exact + rest + (relative(t, s) if s > 0.0 else 0.0), 0.0)


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
