"""The lumped-tail bound of KL, which Gnomon's own is held against: all outside both lists is one bucket.

By the log-sum inequality (Cover and Thomas, 2.7) KL >= T log(T/S) + sum over the tokens in both lists of
p log(p/q), with T and S the buckets' masses of reference and candidate. That is true of exact probabilities.
Of a server's own numbers it need not be: where S is what rounding left over, T log(T/S) may be anything, and
infinite where S comes out 0.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.special
from numpy.typing import NDArray

from compare.metrics.distribution import ROUNDING_MASS, Positions

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

NOTHING = 1e-12


def lumped(p: Floats, q: Floats, both: Ids, allowance: float = 0.0) -> float:
    """Return the bound in nats; p and q are probabilities (V,), `both` the tokens in both lists.

    With an `allowance` the candidate's probabilities may be too large by a factor 1 + e, e from 0 to there,
    so that S is too small by as much: the least of exact + T log(T/(S + e)) + log(1 + e) over e. Its slope in
    e is 1/(1 + e) - T/(S + e), so it falls until e = (T - S)/(1 - T).
    """
    t, s = _rest(p, both), _rest(q, both)
    exact = float(scipy.special.rel_entr(p[both], q[both]).sum())
    e = min(max((t - s) / (1.0 - t), 0.0), allowance) if t < 1.0 else allowance
    return exact + float(scipy.special.rel_entr(t, s + e)) + math.log1p(e)


def _rest(probability: Floats, both: Ids) -> float:
    """Return the bucket's mass, 0 where it is what 64 bits leave of nothing."""
    rest = 1.0 - float(probability[both].sum())
    return rest if rest > NOTHING else 0.0


def allowance_of(candidate: Positions) -> Floats:
    """Return (n,) by how much the KL bound lets the unseen mass of a candidate's lists be too small."""
    spare: Floats = np.where(candidate.is_exhausted, 0.0, np.maximum(ROUNDING_MASS - candidate.unseen, 0.0))
    return spare
