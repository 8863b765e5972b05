"""By how much the candidate's probability of the reference's chosen token differs from the reference's own.

The change is q(x) - p(x), from -1 to 1; below 0 the candidate is less sure of what the full model says.
A token that the candidate's report lacks has there a probability from 0 to min(m, r): it counts with the
value in that interval which is nearest to p(x), so that the change is the least that the reports allow.
(Leaving such positions out would hide just the worst ones.)

Source: llama.cpp's `llama-perplexity --kl-divergence`, delta p.
"""

from __future__ import annotations

import numpy as np

from compare.metrics.distribution import Bools, Floats, Ints, Positions
from compare.metrics.overlap import Names, Overlap
from ingest.tokens import NO_ID, NO_KEY, TokenColumns


class ChosenTokens:
    """The reference's chosen token at each of n positions, seen from both sides."""

    def __init__(
        self, chosen: TokenColumns, reference: Positions, candidate: Positions, shared: Overlap
    ) -> None:
        names = np.where(shared.is_by_id, chosen.id, chosen.key.view(np.int64))
        is_named = np.where(shared.is_by_id, chosen.id != NO_ID, chosen.key != NO_KEY)
        own, is_own = _logprob_of(names, shared.reference_names, reference)
        self.reference: Floats = np.where(is_own & is_named, own, chosen.logprob)
        """(n,) the reference's logprob of it, NaN where unknown."""
        other, is_other = _logprob_of(names, shared.candidate_names, candidate)
        self.is_listed: Bools = is_other & is_named
        """(n,) whether the candidate's report names it."""
        self.candidate: Floats = np.where(self.is_listed, other, np.nan)
        """(n,) the candidate's logprob of it, NaN where its report lacks it."""
        self.is_known: Bools = is_named & ~np.isnan(self.reference)
        """(n,) whether the token can be looked up at all."""


def probability_change(chosen: ChosenTokens, candidate: Positions) -> Floats:
    """Return (n,) q(x) - p(x), NaN where p(x) is unknown or x cannot be told from others."""
    p = np.exp(np.minimum(np.where(chosen.is_known, chosen.reference, -np.inf), 0.0))
    q = np.exp(np.minimum(np.where(chosen.is_listed, chosen.candidate, -np.inf), 0.0))
    nearest = np.minimum(p, candidate.unseen_bound)
    change: Floats = np.where(chosen.is_known, np.where(chosen.is_listed, q, nearest) - p, np.nan)
    return change


def _logprob_of(names: Ints, listed: Names, positions: Positions) -> tuple[Floats, Bools]:
    """(n,) logprobs of named tokens in their lists, and whether each is there."""
    count = len(names)
    logprob = np.full(count, -np.inf)
    is_there = np.zeros(count, dtype=np.bool_)
    if not len(listed):
        return logprob, is_there
    # Nearly always the first entry is the one.
    is_there = (names == listed[0]) & (positions.length > 0)
    logprob[is_there] = positions.logprob[0][is_there]
    left = np.flatnonzero(~is_there)
    if len(left):
        same = listed[:, left] == names[left]
        same &= np.arange(len(listed))[:, None] < positions.length[left]
        place = same.argmax(axis=0)
        found = same.any(axis=0)
        is_there[left] = found
        logprob[left[found]] = positions.logprob[place[found], left[found]]
    return logprob, is_there


def log_ratio(chosen: ChosenTokens, candidate: Positions) -> Floats:
    """Return (n,) log p(x) - log q(x), NaN where p(x) is unknown or 0, infinite where q(x) is 0.

    A token that the candidate's report lacks has at most its last ranked probability.
    """
    bound = np.where(candidate.is_exhausted, 0.0, candidate.last_ranked)
    least = np.log(bound, out=np.full_like(bound, -np.inf), where=bound > 0.0)
    q = np.where(chosen.is_listed, chosen.candidate, least)
    is_possible = chosen.is_known & (chosen.reference > -np.inf)
    ratio: Floats = np.subtract(chosen.reference, q, out=np.full_like(q, np.nan), where=is_possible)
    return ratio
