"""The least KL(reference || candidate) at one position that both top-k reports allow, in nats.

Write p, q for the two distributions; m and r as in `distribution`; P for the reference's report, Q
for the candidate's. Every token falls in one of four classes:

- in both reports: p log(p/q) is known;
- A, reference only: p_a known; q_a unknown, at most u = m_Q;
- B, candidate only: q_b known; p_b unknown, at most v = m_P;
- the rest, one bucket: masses t (reference) and s (candidate) unknown. By the log-sum inequality
  t log(t/s) is the least that any split of it can give.

Minimise  sum_A p_a log(p_a/q_a) + sum_B p_b log(p_b/q_b) + t log(t/s)
subject to  sum_A q_a + s = r_Q,  sum_B p_b + t = r_P,  0 <= q_a <= u,  0 <= p_b <= v.

This is convex. For fixed t the best q is a water-filling, q_a = min(u, L p_a) with s = L t; for
fixed s the best p is another, p_b = min(v, M q_b) with t = M s. One could alternate the two until
they agree; where they agree L M = 1, so both share the one number L, and with A' and B' the tokens
under their caps

    L = (r_Q - sum of capped q + sum_B' q_b) / (r_P - sum of capped p + sum_A' p_a).

s/L - t falls in L wherever s, t >= 0, so the root is unique: it is found by walking over the sorted
values of L at which a token meets its cap, without iteration. Where no root has s, t > 0 (the caps
alone can hold all the unseen mass), the minimum has s = t = 0 and the two sides fill apart.

The value is a true lower bound, never negative, and never below the bound that lumps everything
outside both lists (data processing inequality). From top-k reports there is no finite upper bound.

r_Q is what a server's probabilities leave of 1, so it is no better than their rounding. Where it is under
`ROUNDING_MASS` it may be that large if this lowers the value: the minimum is taken over its size too. At
every size the value is at least the lumped one, so it is at least the lumped one with the same allowance. It
may lie under the lumped one without it, which on a server's own numbers can pass the truth without limit:
where its candidate bucket is rounding alone, a token of 4 % in the reference's bucket gives any value.

Sources: Cover and Thomas, Elements of Information Theory, 2.7 (log-sum inequality); Boyd and
Vandenberghe, Convex Optimization, 5.5.3 and example 5.2 (water-filling).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compare.metrics.distribution import (
    INFINITE,
    ROUNDING_MASS,
    Bools,
    Codes,
    Floats,
    Ints,
    Positions,
    reason_names,
)
from compare.metrics.overlap import TINY, Overlap

_WIDTHS = (0, 1, 2, 4, 8)
"""Positions are solved together with those that have about as many one-sided tokens..."""
_MANY = 1000
"""...where they are so many that it pays."""

_Unknown = tuple[Floats, Floats, Floats, Floats, Floats, Floats]
"""p (a, n) outside the candidate's list, q (b, n) outside the reference's, and r_P, r_Q, m_Q, m_P (n,)."""


@dataclass(frozen=True, slots=True)
class KlBounds:
    """(n,) lower bounds in nats, and for each position why there is none (codes of POSITION_REASONS)."""

    nats: Floats
    reason: Codes

    @property
    def reasons(self) -> tuple[str | None, ...]:
        """(n,) why there is no bound, None where there is one."""
        return reason_names(self.reason)


def kl_lower(reference: Positions, candidate: Positions, shared: Overlap) -> KlBounds:
    """Return the least KL(reference || candidate) of each of n positions.

    A position is unscored for the reasons of its reports, or `infinite`: the reference gives mass to
    a token that the candidate is known to hold impossible.
    """
    p, q = reference.probability, candidate.probability
    is_infinite = (shared.is_shared & (p > TINY) & ~shared.is_possible).any(axis=0)
    exact = (p * shared.gap).sum(axis=0)
    only_p, count_p = _packed(p, ~shared.is_shared & (p > TINY))
    only_q, count_q = _packed(q, ~shared.is_shared_candidate & (q > TINY))
    r_p, r_q = reference.unseen, candidate.unseen
    u, v = candidate.last_ranked, reference.last_ranked
    spare = r_p - v * count_q
    is_infinite |= candidate.is_exhausted & ((count_p > 0) | (spare > ROUNDING_MASS))

    unknown = only_p, only_q, r_p, r_q, u, v
    is_open = (shared.reason == 0) & ~is_infinite
    rest, level = _least_by_width(unknown, np.flatnonzero(is_open), np.maximum(count_p, count_q))
    at = np.flatnonzero((r_q < ROUNDING_MASS) & (level < 1.0) & is_open & ~candidate.is_exhausted)
    if len(at):
        rest[at] = _least_with_rounding(unknown, at, np.maximum(count_p, count_q))
    nats = np.where(is_infinite, 0.0, np.maximum(exact + rest, 0.0))
    reason = np.where((shared.reason == 0) & is_infinite, np.uint8(INFINITE), shared.reason)
    return KlBounds(nats, reason)


def _packed(values: Floats, kept: Bools) -> tuple[Floats, Ints]:
    """Return the kept values of each column without holes, 0 behind them, and how many they are.

    One-sided tokens are few: what is solved for them should not run over the whole lists.
    """
    turned = np.array(kept.T, order="C")
    counts: Ints = np.count_nonzero(kept, axis=0).astype(np.int64)
    column = np.repeat(np.arange(len(turned)), counts)
    at = np.flatnonzero(turned) - column * len(kept)
    place = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
    packed = np.zeros((int(counts.max(initial=0)), len(turned)))
    packed[place, column] = values[at, column]
    return packed, counts


def _least_by_width(unknown: _Unknown, rows: Ints, widest: Ints) -> tuple[Floats, Floats]:
    """Solve the problem at some positions: (n,) minima, 0 elsewhere, and the levels L, 1 elsewhere.

    `widest` is the larger number of one-sided tokens. Where the sides fill apart, L is that of A.
    """
    rest, level = np.zeros_like(unknown[2]), np.ones_like(unknown[2])
    width = widest[rows]
    least = -1
    apart = []
    for most in (*(_WIDTHS if len(rows) >= _MANY else _WIDTHS[2:3]), int(width.max(initial=0))):
        at = rows[(width > least) & (width <= most)]
        least = max(least, most)
        if len(at):
            rest[at], level[at], is_joint = _least_joint(*_some(unknown, at, most))
            apart.append(at[~is_joint])
    at = np.concatenate(apart) if apart else rows
    if len(at):
        rest[at], level[at] = _least_apart(*_some(unknown, at, int(widest[at].max())))
    return rest, level


def _some(unknown: _Unknown, at: Ints, most: int) -> _Unknown:
    """Return some positions of the problem, none of which has more than `most` tokens on one side alone."""
    p, q, r_p, r_q, u, v = unknown
    return p[:most, at], q[:most, at], r_p[at], r_q[at], u[at], v[at]


def _least_joint(
    p: Floats, q: Floats, r_p: Floats, r_q: Floats, u: Floats, v: Floats
) -> tuple[Floats, Floats, Bools]:
    """Solve the problem for n positions; p (a, n) is 0 outside A, q (b, n) outside B.

    Return the minimum, the level L, and whether s, t > 0 there; elsewhere the numbers mean nothing.
    """
    is_q = q > 0.0
    v_q = v * is_q
    level = _walk(
        np.concatenate([_ratio(u, p), _ratio(q, v_q)]),
        np.concatenate([-u * (p > 0.0), q]),
        np.concatenate([-p, v_q]),
        r_q,
        p.sum(axis=0) + r_p - v_q.sum(axis=0),
    )
    q_a = _filled(p, u, level)
    p_b = _filled(q, v, 1.0 / np.maximum(level, TINY))
    s, t = r_q - q_a.sum(axis=0), r_p - p_b.sum(axis=0)
    is_joint = (s > 0.0) & (t > 0.0) & (level < np.inf)
    known = _relative(np.concatenate([p, p_b]), np.concatenate([q_a, q])).sum(axis=0)
    return known - np.where(is_joint, t, 0.0) * np.log(np.where(is_joint, level, 1.0)), level, is_joint


def _least_apart(
    p: Floats, q: Floats, r_p: Floats, r_q: Floats, u: Floats, v: Floats
) -> tuple[Floats, Floats]:
    """Solve it where the caps alone hold all the unseen mass: s = t = 0, and the sides fill apart."""
    level, q_a = _fill(p, u, r_q)
    _, p_b = _fill(q, v, r_p)
    return _relative(np.concatenate([p, p_b]), np.concatenate([q_a, q])).sum(axis=0), level


def _least_with_rounding(unknown: _Unknown, at: Ints, widest: Ints) -> Floats:
    """Solve it for positions whose r_Q is no more than rounding and where more of it would lower the KL.

    A server's 32-bit sum of exponentials misses the smallest ones, so its probabilities come out too
    large by a common factor 1 + e and r_Q too small by e. With r_Q + e the minimum is the former one
    plus log(1 + e); it falls while L < 1, so e goes as far as L = 1 or `ROUNDING_MASS`.
    """
    p, q, r_p, r_q, u, v = _some(unknown, at, int(widest[at].max()))
    rows, width = np.arange(len(at)), widest[at]
    used = np.full_like(r_q, ROUNDING_MASS)
    least, level = _least_by_width((p, q, r_p, used, u, v), rows, width)
    over = np.flatnonzero(level > 1.0)
    if len(over):
        p_b = np.minimum(v[over], q[:, over]).sum(axis=0)
        at_one = np.minimum(u[over], p[:, over]).sum(axis=0) + np.maximum(r_p[over] - p_b, 0.0)
        used[over] = np.clip(at_one, r_q[over], ROUNDING_MASS)
        least[over] = _least_by_width((p, q, r_p, used, u, v), over, width)[0][over]
    return least + np.log1p(used - r_q)


def _fill(weights: Floats, cap: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Spread `total` over each column in proportion to `weights`, at most `cap` an entry.

    Returns the level, infinite where all entries reach the cap, and the filled columns.
    """
    level = _walk(_ratio(cap, weights), -cap * (weights > 0.0), -weights, total, weights.sum(axis=0))
    level = np.where(total > 0.0, level, 0.0)
    return level, _filled(weights, cap, level)


def _filled(weights: Floats, cap: Floats, level: Floats) -> Floats:
    """Return min(cap, level * weight), 0 where the weight is 0 even if the level is infinite."""
    filled: Floats = np.minimum(np.minimum(level, 1e300) * weights, cap)
    return filled


def _walk(breaks: Floats, top: Floats, bottom: Floats, top_0: Floats, bottom_0: Floats) -> Floats:
    """Return (n,) the first level L with 0 < N(L) <= L D(L), infinite if there is none.

    N and D are step functions: they start at `top_0` and `bottom_0` and change by `top` and `bottom`
    at each of the column's `breaks` (s, n). At an infinite break, which never comes, both must change by
    0. The root in a step is N/D.
    """
    steps, count = breaks.shape
    columns = np.arange(count)
    order = np.argsort(breaks.T, axis=1).T * count + columns
    ends = np.full((steps + 1, count), np.inf)
    n, d = np.empty_like(ends), np.empty_like(ends)
    ends[:-1] = breaks.ravel()[order]
    n[0], d[0] = top_0, bottom_0
    n[1:], d[1:] = top.ravel()[order], bottom.ravel()[order]
    np.cumsum(n, axis=0, out=n)
    np.cumsum(d, axis=0, out=d)
    is_positive = (d > 0.0) & (n > 0.0)
    root = np.where(is_positive, n, np.inf) / np.where(is_positive, d, 1.0)
    is_here = is_positive & (root <= ends) & (root < np.inf)
    first = np.argmax(is_here, axis=0)
    level: Floats = np.where(is_here[first, columns], root[first, columns], np.inf)
    return level


def _ratio(a: Floats, b: Floats) -> Floats:
    """Return a / b, infinite where b is (next to) 0."""
    is_positive = b > TINY
    return np.where(is_positive, a / np.where(is_positive, b, 1.0), np.inf)


def _relative(a: Floats, b: Floats) -> Floats:
    """Return a log(a / b), 0 where a is 0 (and where b is: the caller has called that infinite)."""
    is_positive = (a > 0.0) & (b > 0.0)
    log = np.log(np.where(is_positive, a, 1.0))
    log -= np.log(np.where(is_positive, b, 1.0))
    return np.multiply(a, log, out=log)
