"""Bounds on the Jensen-Shannon divergence of one position, in nats (design, section 5).

JS(P, Q) = (KL(P, M) + KL(Q, M)) / 2 with M = (P + Q) / 2; symmetric, from 0 to log 2. Tokens in both
lists are exact. All else is one bucket of mass r_P and r_Q. Lumping never raises a divergence (data
processing inequality), so the lumped value is the lower bound. What the lump hides is at most the
binary entropy of r_P / (r_P + r_Q), weighted (r_P + r_Q) / 2: the two tails share no token. With the
bucket's own term that comes to log 2 (r_P + r_Q) / 2.

Source: Lin 1991, Divergence measures based on the Shannon entropy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compare.metrics.distribution import Floats, Positions
from compare.metrics.overlap import TINY, Overlap

LOG_2 = float(np.log(2.0))


class JsBounds(NamedTuple):
    """(n,) bounds in nats. Positions with a reason hold numbers without meaning."""

    lower: Floats
    upper: Floats


def js_bounds(reference: Positions, candidate: Positions, shared: Overlap) -> JsBounds:
    """Return the interval of JS(reference, candidate) at each of n positions."""
    p, q, both = reference.probability, shared.candidate_probability, shared.is_possible
    with np.errstate(all="ignore"):  # what is on one side only is not looked at
        terms = _terms(p, q, -shared.gap)
    terms[~both] = 0.0
    exact = terms.sum(axis=0)
    one_sided = shared.is_shared & ~both
    if one_sided.any():  # impossible on one side
        exact += 0.5 * LOG_2 * np.where(one_sided, p + q, 0.0).sum(axis=0)
    tail_p = reference.unseen + np.where(shared.is_shared, 0.0, p).sum(axis=0)
    tail_q = candidate.unseen + np.where(shared.is_shared_candidate, 0.0, candidate.probability).sum(axis=0)
    lower = exact + _bucket(tail_p, tail_q)
    upper = exact + LOG_2 * (tail_p + tail_q) / 2.0
    # Sums over 1 by rounding could carry the bounds past the largest value there is.
    return JsBounds(np.clip(lower, 0.0, LOG_2), np.clip(upper, 0.0, LOG_2))


def _terms(p: Floats, q: Floats, change: Floats) -> Floats:
    """Return (p log(p/m) + q log(q/m)) / 2 with m = (p + q) / 2 and `change` = log(q/p), both positive.

    With g = log(m/p): -p g + q (log(q/p) - g), which is exactly 0 where p = q.
    """
    to_mean = q - p
    to_mean /= p
    to_mean *= 0.5
    np.log1p(to_mean, out=to_mean)
    terms = change - to_mean
    terms *= q
    to_mean *= p
    terms -= to_mean
    terms *= 0.5
    return np.maximum(terms, 0.0, out=terms)


def _bucket(p: Floats, q: Floats) -> Floats:
    """Return the same of the two lumps, of which either may be 0."""
    both = (p > TINY) & (q > TINY)
    one, other = np.where(both, p, 1.0), np.where(both, q, 1.0)
    return np.where(both, _terms(one, other, np.log(other / one)), 0.5 * LOG_2 * (p + q))
