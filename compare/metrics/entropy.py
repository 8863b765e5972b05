"""Bounds on the entropy of one position, in nats, from a top-k report (design, section 5).

With known probabilities p, unseen mass r, last ranked probability m and vocabulary size V:

- upper: -sum p log p - r log r + r log(V - k), k the number of known tokens: the unseen mass is
  flattest when it is spread evenly over all V - k tokens that are left;
- lower: no unseen token is likelier than m, so the unseen mass is most concentrated as floor(r/m)
  tokens of m and one with the remainder. (Lumping the tail into one token would cap top-20 entropy
  at log 21 = 3.04, and a distribution that is far too flat could not be seen.)

Both are exact consequences of the report: source, the concavity of -x log x.

A stated V may be wrong. If the list names more tokens than V, or V - k tokens of m cannot hold r, no
distribution over V tokens makes this report, and the upper bound would come out under the lower one: then
there is none.
"""

from __future__ import annotations

import numpy as np

from compare.metrics.distribution import ROUNDING_MASS, Floats, Ints, Positions


def entropy_lower(positions: Positions) -> Floats:
    """Return (n,) lower bounds in nats; positions that are not scored hold numbers without meaning."""
    unseen, bound = positions.unseen, positions.unseen_bound
    whole = np.floor(np.divide(unseen, bound, out=np.zeros_like(bound), where=bound > 0.0))
    remainder = np.maximum(unseen - whole * bound, 0.0)
    lower: Floats = positions.surprise + whole * _plogp(bound) + _plogp(remainder)
    return lower


def entropy_upper(positions: Positions, vocabulary_size: int | Ints) -> Floats:
    """Return (n,) upper bounds in nats. `vocabulary_size`, one or (n,), counts the known tokens too.

    Infinite where the report shows that the vocabulary is larger. Elsewhere never under the lower bound.
    """
    left = vocabulary_size - positions.known
    room = np.maximum(left, 0) * positions.last_ranked
    tail = np.where(left > 0, positions.unseen, 0.0)
    upper: Floats = positions.surprise + _plogp(tail) + tail * np.log(np.maximum(left, 1))
    is_over = positions.unseen > room
    if is_over.any():  # by rounding, where it is little
        upper[is_over] = np.maximum(upper, entropy_lower(positions))[is_over]
    upper[(left < 0) | (positions.unseen > room + ROUNDING_MASS)] = np.inf
    return upper


def _plogp(p: Floats) -> Floats:
    """Return -p log p, 0 at 0. A probability a rounding above 1 gives 0, not less."""
    log = np.log(p, out=np.zeros_like(p), where=p > 0.0)
    terms: Floats = np.maximum(-p * log, 0.0)
    return terms
