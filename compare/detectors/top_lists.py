"""Numbers of many lists of alternatives at once: the lists hold thousands of entries an answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.observation import Token


class TopLists(NamedTuple):
    """One row for each token that has a list, in order.

    `position` is the token's position in the answer, `size` the length of its list, `possible` how many
    entries have a probability over 0, `mass` the sum of their probabilities, `best` the greatest
    logprob (nats, -inf where nothing is possible).
    """

    position: NDArray[np.int64]
    size: NDArray[np.int64]
    possible: NDArray[np.int64]
    mass: NDArray[np.float64]
    best: NDArray[np.float64]


def top_lists(tokens: tuple[Token, ...]) -> TopLists:
    """Sum up the lists of `tokens`. Logprobs over 1 count as 1, so that no sum overflows."""
    rows = [(index, token.top) for index, token in enumerate(tokens) if token.top]
    size = np.array([len(top) for _, top in rows], dtype=np.int64)
    position = np.array([index for index, _ in rows], dtype=np.int64)
    if not rows:
        nothing = np.zeros(0)
        return TopLists(position, size, size, nothing, nothing)
    logprobs = np.array([entry.logprob for _, top in rows for entry in top])
    starts = np.concatenate(([0], np.cumsum(size)[:-1]))
    return TopLists(
        position,
        size,
        np.add.reduceat((logprobs > -np.inf).astype(np.int64), starts),
        np.add.reduceat(np.exp(np.minimum(logprobs, 1.0)), starts),
        np.maximum.reduceat(logprobs, starts),
    )
