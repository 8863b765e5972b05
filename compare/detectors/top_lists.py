"""Numbers of the lists of alternatives, worked out for a whole answer at once from its columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ingest.tokens import TokenColumns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LOWEST = -1e9  # finite, so that it can be reckoned with
UNSURE = -1.05
"""Where even the best is under a third, the distribution may be flat."""


@dataclass(frozen=True)
class TopLists:
    """One row for each token that has a list, in order. Every entry of every list is read."""

    columns: TokenColumns

    @cached_property
    def position(self) -> Ints:
        """(n,) the token's position in the answer."""
        return np.flatnonzero(self.columns.start[1:] != self.columns.start[:-1])

    @cached_property
    def start(self) -> Ints:
        """(n,) where its entries begin; they reach up to the next start, as empty lists have none."""
        are_all = self.position.size == self.columns.start.size - 1
        starts: Ints = self.columns.start[:-1] if are_all else self.columns.start[self.position]
        return starts

    @cached_property
    def size(self) -> Ints:
        """(n,) the length of its list."""
        are_all = self.position.size == self.columns.start.size - 1
        ends: Ints = self.columns.start[1:] if are_all else self.columns.start[self.position + 1]
        sizes: Ints = ends - self.start
        return sizes

    @cached_property
    def best(self) -> Floats:
        """(n,) the greatest logprob in nats, -inf where nothing is possible."""
        best: Floats = np.maximum.reduceat(self.columns.top_logprob, self.start)
        return best

    @cached_property
    def least(self) -> Floats:
        """(n,) the least logprob in nats, -1e9 for -inf."""
        least: Floats = np.minimum.reduceat(np.maximum(self.columns.top_logprob, _LOWEST), self.start)
        return least

    @cached_property
    def mass(self) -> Floats:
        """(n,) the sum of the probabilities; a logprob over 1 counts as 1, so that no sum overflows."""
        mass: Floats = np.add.reduceat(np.exp(np.minimum(self.columns.top_logprob, 1.0)), self.start)
        return mass

    @cached_property
    def has_impossible(self) -> bool:
        """Whether any entry of any list is impossible."""
        return bool(self.columns.top_logprob.min(initial=0.0) == -np.inf)

    @cached_property
    def possible(self) -> Ints:
        """(n,) how many entries have a probability over 0."""
        if not self.has_impossible:
            return self.size
        is_possible = (self.columns.top_logprob > -np.inf).astype(np.int64)
        possible: Ints = np.add.reduceat(is_possible, self.start)
        return possible

    def repeated(self) -> list[int]:
        """Positions whose list has the numbers, ids and bytes of the list before it."""
        columns, start, size = self.columns, self.start, self.size
        last = columns.top_logprob[start + size - 1]
        # Equal lists have equal ends: few are left to be compared entry by entry.
        is_alike = (last[1:] == last[:-1]) & (self.best[1:] == self.best[:-1]) & (size[1:] == size[:-1])
        found = []
        for row in (np.flatnonzero(is_alike) + 1).tolist():
            begin, end = int(start[row]), int(start[row] + size[row])
            before = slice(int(start[row - 1]), begin)
            if all(
                np.array_equal(column[begin:end], column[before])
                for column in (columns.top_id, columns.top_key, columns.top_logprob)
            ):
                found.append(int(self.position[row]))
        return found
