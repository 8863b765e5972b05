"""Which entries of two sides' lists are the same token, for many positions at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compare.metrics.distribution import (
    NO_IDENTITY,
    Bools,
    Codes,
    Floats,
    Ints,
    Positions,
    SmallInts,
    reason_names,
)

TINY = 1e-300
"""A token of less probability changes no sum, and its reciprocal would overflow."""

Names = SmallInts | Ints
"""Ids, or the bits of keys."""

WIDE = 128
"""Longer lists are matched by sorting, position by position; shorter ones entry against entry, which
takes a tenth of the time at 20."""


@dataclass(frozen=True)
class Overlap:
    """Which tokens both lists hold. v and w are the longest lists of reference and candidate."""

    is_shared: Bools
    """(v, n) whether the candidate's list holds the reference's entry too."""
    is_shared_candidate: Bools
    """(w, n) the mirror image."""
    candidate_logprob: Floats
    """(v, n) the candidate's logprob of the reference's entry, -inf where it does not list it."""
    candidate_probability: Floats
    """(v, n) its probability, 0 where it does not list it."""
    reference_logprob: Floats
    """(v, n)"""
    reference_probability: Floats
    """(v, n)"""
    reason: Codes
    """(n,) why the position cannot be compared, codes of POSITION_REASONS."""
    reference_names: Names
    """(v, n) what the tokens were told apart by: ids, or the bits of keys."""
    candidate_names: Names
    """(w, n)"""
    is_by_id: Bools
    """(n,)"""

    @cached_property
    def is_possible(self) -> Bools:
        """(v, n) whether both lists hold the token and neither holds it impossible."""
        possible: Bools = self.is_shared & (self.reference_probability > TINY)
        possible &= self.candidate_logprob > -np.inf
        return possible

    @cached_property
    def gap(self) -> Floats:
        """(v, n) log p - log q of the tokens that are possible on both sides, elsewhere 0.

        From logarithms, since exp may underflow.
        """
        with np.errstate(invalid="ignore"):
            gap = self.reference_logprob - self.candidate_logprob
        gap[~self.is_possible] = 0.0
        return gap

    @property
    def reasons(self) -> tuple[str | None, ...]:
        """(n,) why the position cannot be compared, None where it can."""
        return reason_names(self.reason)


def overlap(reference: Positions, candidate: Positions) -> Overlap:
    """Find the tokens that both reports hold, position by position, by id, else by bytes.

    The identity is one for a whole position: ids if every entry of both reports has one, else bytes
    if every entry has them, else `no_token_identity`. Raises ValueError if the lengths differ.
    """
    if len(reference) != len(candidate):
        raise ValueError(f"{len(reference)} reference positions against {len(candidate)} of the candidate")
    is_by_id = reference.has_ids & candidate.has_ids
    has_names = is_by_id
    ours: Names = reference.id
    theirs: Names = candidate.id
    if not is_by_id.all():
        ours = np.where(is_by_id, ours, reference.key.view(np.int64))
        theirs = np.where(is_by_id, theirs, candidate.key.view(np.int64))
        has_names = is_by_id | (reference.has_keys & candidate.has_keys)
    place = _places(ours, theirs)
    place[:, ~has_names] = 0
    count = len(reference)
    # Place 0 stands for "not in the list"; padding meets padding, which has no mass.
    logprob = np.concatenate([np.full((1, count), -np.inf), candidate.logprob])
    probability = np.concatenate([np.zeros((1, count)), candidate.probability])
    at = place * count + np.arange(count)
    seen = np.zeros(logprob.shape, dtype=np.bool_)
    seen.ravel()[at] = True
    reason = np.where(reference.reason > 0, reference.reason, candidate.reason)
    reason[(reason == 0) & ~has_names] = NO_IDENTITY
    return Overlap(
        place > 0,
        seen[1:],
        logprob.ravel()[at],
        probability.ravel()[at],
        reference.logprob,
        reference.probability,
        reason,
        ours,
        theirs,
        is_by_id,
    )


def _places(ours: Names, theirs: Names) -> Ints:
    """(v, n) where each of our names stands in their column, counted from 1; 0 where nowhere."""
    width = len(theirs)
    if width > WIDE:
        return _places_sorted(ours, theirs)
    place = np.zeros(ours.shape, dtype=np.uint8)
    same = np.empty(ours.shape, dtype=np.bool_)
    marked = np.empty(ours.shape, dtype=np.uint8)
    for row in range(width):
        np.equal(ours, theirs[row], out=same)
        # At most one row matches where no token stands twice; elsewhere the position is unscored, and
        # any place inside the list will do.
        np.multiply(same.view(np.uint8), np.uint8(row + 1), out=marked)
        np.maximum(place, marked, out=place)
    return place.astype(np.int64)


def _places_sorted(ours: Names, theirs: Names) -> Ints:
    place = np.zeros(ours.shape, dtype=np.int64)
    for column in range(ours.shape[1]):
        names, own = theirs[:, column], ours[:, column]
        order = np.argsort(names)
        found = np.minimum(np.searchsorted(names, own, sorter=order), len(names) - 1)
        place[:, column] = np.where(names[order[found]] == own, order[found] + 1, 0)
    return place
