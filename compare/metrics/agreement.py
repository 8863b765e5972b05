"""Whether both sides hold the same token most likely, read from the lists, not from what was chosen."""

from __future__ import annotations

import numpy as np

from compare.metrics.distribution import Floats, Overlap, Positions


def top1_agreement(reference: Positions, candidate: Positions, shared: Overlap) -> Floats:
    """Return (n,) 1 where the most likely tokens agree, else 0; of tied ones any may agree."""
    top_p = reference.probability == reference.probability.max(axis=1, keepdims=True, initial=0.0)
    top_q = candidate.probability == candidate.probability.max(axis=1, keepdims=True, initial=0.0)
    both = shared.same & top_p[:, :, None] & top_q[:, None, :]
    agreement: Floats = both.any(axis=(1, 2)).astype(np.float64)
    return agreement
