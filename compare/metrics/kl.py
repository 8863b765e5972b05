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

Sources: Cover and Thomas, Elements of Information Theory, 2.7 (log-sum inequality); Boyd and
Vandenberghe, Convex Optimization, 5.5.3 and example 5.2 (water-filling).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compare.metrics.distribution import ROUNDING_MASS, Bools, Floats, Overlap, Positions

TINY = 1e-300


@dataclass(frozen=True, slots=True)
class KlBounds:
    """(n,) lower bounds in nats, and for each position why there is none (None where there is)."""

    nats: Floats
    reasons: tuple[str | None, ...]


def kl_lower(reference: Positions, candidate: Positions, shared: Overlap) -> KlBounds:
    """Return the least KL(reference || candidate) of each of n positions.

    A position is unscored for the reasons of its reports, or `infinite`: the reference gives mass to
    a token that the candidate is known to hold impossible.
    """
    p, q = reference.probability, candidate.probability
    in_both_p: Bools = np.any(shared.same, axis=2)
    in_both_q: Bools = np.any(shared.same, axis=1)
    # Only what is in both lists is compared entry by entry; logarithms, since exp may underflow.
    q_log = np.where(shared.same, candidate.logprob[:, None, :], -np.inf).max(axis=2, initial=-np.inf)
    is_known = in_both_p & (p > 0.0)
    is_infinite = (is_known & (q_log == -np.inf)).any(axis=1)
    gap = np.subtract(reference.logprob, q_log, out=np.zeros_like(p), where=is_known & np.isfinite(q_log))
    exact = (p * gap).sum(axis=1)

    # Below TINY a token changes no sum, and its reciprocal would overflow.
    only_p = np.where(reference.has_entry & ~in_both_p & (p > TINY), p, 0.0)
    only_q = np.where(candidate.has_entry & ~in_both_q & (q > TINY), q, 0.0)
    r_p, r_q = reference.unseen, candidate.unseen
    u, v = candidate.last_ranked, reference.last_ranked
    spare = r_p - v * np.count_nonzero(only_q > 0.0, axis=1)
    is_infinite |= candidate.is_exhausted & ((only_p > 0.0).any(axis=1) | (spare > ROUNDING_MASS))

    rest, level = _least_unseen(only_p, only_q, r_p, r_q, u, v)
    doubtful = np.flatnonzero((r_q < ROUNDING_MASS) & (level < 1.0) & ~candidate.is_exhausted)
    if len(doubtful):
        rows = (only_p[doubtful], only_q[doubtful], r_p[doubtful], r_q[doubtful], u[doubtful], v[doubtful])
        rest[doubtful] = _least_with_rounding(*rows)
    nats = np.where(is_infinite, 0.0, np.maximum(exact + rest, 0.0))
    return KlBounds(
        nats,
        tuple(
            reason or ("infinite" if infinite else None)
            for reason, infinite in zip(shared.reasons, is_infinite, strict=True)
        ),
    )


def _least_unseen(
    p: Floats, q: Floats, r_p: Floats, r_q: Floats, u: Floats, v: Floats
) -> tuple[Floats, Floats]:
    """Solve the problem for n rows and return the minimum and the level L.

    p (n, a) is 0 outside A, q (n, b) outside B. Where the sides fill apart, L is that of A.
    """
    u_, v_ = u[:, None], v[:, None]
    level = _walk(
        np.concatenate([_ratio(u_, p), _ratio(q, v_)], axis=1),
        np.concatenate([np.broadcast_to(-u_, p.shape), q], axis=1),
        np.concatenate([-p, np.where(q > 0.0, v_, 0.0)], axis=1),
        r_q,
        p.sum(axis=1) + r_p - v * np.count_nonzero(q > 0.0, axis=1),
    )
    q_a = _filled(p, u_, level)
    p_b = _filled(q, v_, np.divide(1.0, level, out=np.zeros_like(level), where=level > 0.0))
    s, t = r_q - q_a.sum(axis=1), r_p - p_b.sum(axis=1)
    is_joint = (s > 0.0) & (t > 0.0) & np.isfinite(level)
    apart = np.flatnonzero(~is_joint)
    level[apart], q_a[apart] = _fill(p[apart], u[apart], r_q[apart])
    _, p_b[apart] = _fill(q[apart], v[apart], r_p[apart])
    bucket = np.where(is_joint, -t * np.log(np.where(is_joint, level, 1.0)), 0.0)
    return _relative(p, q_a).sum(axis=1) + _relative(p_b, q).sum(axis=1) + bucket, level


def _least_with_rounding(p: Floats, q: Floats, r_p: Floats, r_q: Floats, u: Floats, v: Floats) -> Floats:
    """Solve it for rows whose r_Q is no more than rounding and where more of it would lower the KL.

    A server's 32-bit sum of exponentials misses the smallest ones, so its probabilities come out too
    large by a common factor 1 + e and r_Q too small by e. With r_Q + e the minimum is the former one
    plus log(1 + e); it falls while L < 1, so e goes as far as L = 1 or `ROUNDING_MASS`.
    """
    most = np.full_like(r_q, ROUNDING_MASS)
    _, level = _least_unseen(p, q, r_p, most, u, v)
    p_b = np.minimum(v[:, None], q).sum(axis=1)
    at_one = np.minimum(u[:, None], p).sum(axis=1) + np.maximum(r_p - p_b, 0.0)
    used = np.where(level <= 1.0, most, np.clip(at_one, r_q, most))
    least, _ = _least_unseen(p, q, r_p, used, u, v)
    return least + np.log1p(used - r_q)


def _fill(weights: Floats, cap: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Spread `total` over each row in proportion to `weights`, at most `cap` an entry.

    Returns the level, infinite where all entries reach the cap, and the filled rows.
    """
    caps = cap[:, None]
    level = _walk(
        _ratio(caps, weights), np.broadcast_to(-caps, weights.shape), -weights, total, weights.sum(axis=1)
    )
    level = np.where(total > 0.0, level, 0.0)
    return level, _filled(weights, caps, level)


def _filled(weights: Floats, cap: Floats, level: Floats) -> Floats:
    """Return min(cap, level * weight), 0 where the weight is 0 even if the level is infinite."""
    scaled = np.multiply(weights, level[:, None], out=np.zeros_like(weights), where=weights > 0.0)
    return np.minimum(cap, scaled)


def _walk(breaks: Floats, top: Floats, bottom: Floats, top_0: Floats, bottom_0: Floats) -> Floats:
    """Return (n,) the first level L with 0 < N(L) <= L D(L), infinite if there is none.

    N and D are step functions: they start at `top_0` and `bottom_0` and change by `top` and `bottom`
    at each of the row's `breaks` (an infinite break never comes). The root in a step is N/D.
    """
    order = np.argsort(breaks, axis=1)
    ends = np.take_along_axis(breaks, order, axis=1)
    is_real = np.isfinite(ends)
    steps_top = np.where(is_real, np.take_along_axis(top, order, axis=1), 0.0)
    steps_bottom = np.where(is_real, np.take_along_axis(bottom, order, axis=1), 0.0)
    n = np.concatenate([top_0[:, None], top_0[:, None] + np.cumsum(steps_top, axis=1)], axis=1)
    d = np.concatenate([bottom_0[:, None], bottom_0[:, None] + np.cumsum(steps_bottom, axis=1)], axis=1)
    ends = np.concatenate([ends, np.full((len(breaks), 1), np.inf)], axis=1)
    root = np.divide(n, d, out=np.full_like(n, np.inf), where=d > 0.0)
    is_here = (d > 0.0) & (n > 0.0) & (root <= ends) & np.isfinite(root)
    first = np.argmax(is_here, axis=1)[:, None]
    level: Floats = np.where(is_here.any(axis=1), np.take_along_axis(root, first, axis=1)[:, 0], np.inf)
    return level


def _ratio(a: Floats, b: Floats) -> Floats:
    """Return a / b, infinite where b is 0."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    ratio: Floats = np.divide(a, b, out=np.full(shape, np.inf), where=b > 0.0)
    return ratio


def _relative(a: Floats, b: Floats) -> Floats:
    """Return a log(a / b), 0 where a is 0 (and where b is: the caller has called that infinite)."""
    is_positive = (a > 0.0) & (b > 0.0)
    log = np.log(a, out=np.zeros_like(a), where=is_positive)
    log -= np.log(b, out=np.zeros_like(b), where=is_positive)
    return a * log
