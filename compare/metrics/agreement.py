"""Whether both sides hold the same token most likely, read from the lists, not from what was chosen."""

from __future__ import annotations

import numpy as np

from compare.metrics.distribution import Floats, Positions
from compare.metrics.overlap import Overlap


def top1_agreement(reference: Positions, candidate: Positions, shared: Overlap) -> Floats:
    """Return (n,) 1 where the most likely tokens agree, else 0; of tied ones any may agree."""
    top_p = reference.logprob == reference.logprob.max(axis=0, initial=-np.inf)
    top_q = shared.candidate_logprob == candidate.logprob.max(axis=0, initial=-np.inf)
    agreement: Floats = (shared.is_shared & top_p & top_q).any(axis=0).astype(np.float64)
    return agreement
