"""Numbers of many lists of alternatives at once: the lists hold thousands of entries an answer.

Reading every entry would take longer than all detectors together. So three entries of each list are
read, and all entries of those lists that look odd by them, and of every sixteenth: what is wrong with a
server's lists is wrong with many.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.alternative import Alternative
from ingest.tokens import Token

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LOGPROB = attrgetter("logprob")
_LOWEST = -1e9  # finite, so that it can be reckoned with
_EVERY = 16
UNSURE = -1.05
"""Where even the best is under a third, the distribution may be flat."""


class Examined(NamedTuple):
    """One row for each list that was read whole.

    `position` is the token's position in the answer, `size` the length of its list, `possible` how many
    entries have a probability over 0, `mass` the sum of their probabilities (a logprob over 1 counts as 1,
    so that no sum overflows), `best` the greatest logprob (nats, -inf where nothing is possible) and
    `least` the least one (-1e9 for -inf).
    """

    position: Ints
    size: Ints
    possible: Ints
    mass: Floats
    best: Floats
    least: Floats


class TopLists(NamedTuple):
    """One row for each token that has a list, in order.

    `best` is the greatest logprob of the first, the second and the last entry, `last` that of the last:
    servers rank their lists, and put a sampled token that is not in its place first or last.
    """

    position: Ints
    size: Ints
    best: Floats
    last: Floats
    examined: Examined


def top_lists(tokens: Sequence[Token]) -> TopLists:
    """Sum up the lists of `tokens`."""
    tops = [token.top for token in tokens]
    size = np.array([len(top) for top in tops], dtype=np.int64)
    position = np.flatnonzero(size)
    size = size[position]
    if not size.size:
        nothing = np.zeros(0)
        return TopLists(position, size, nothing, nothing, examine([], position, size))
    lists = [top for top in tops if top]
    first = np.array([top[0].logprob for top in lists])
    second = np.array([top[1].logprob if len(top) > 1 else -np.inf for top in lists])
    last = np.array([top[-1].logprob for top in lists])
    best = np.maximum(np.maximum(first, second), last)
    is_odd = (best <= UNSURE) | (last == -np.inf)
    is_odd |= np.exp(np.minimum(first, 1.0)) + np.exp(np.minimum(second, 1.0)) > 1.0
    is_odd[::_EVERY] = True
    odd = np.flatnonzero(is_odd)
    whole = examine([lists[index] for index in odd.tolist()], position[odd], size[odd])
    return TopLists(position, size, best, last, whole)


def examine(lists: list[tuple[Alternative, ...]], position: Ints, size: Ints) -> Examined:
    """Read whole lists, of the sizes and positions given."""
    if not lists:
        nothing = np.zeros(0)
        return Examined(position, size, size, nothing, nothing, nothing)
    logprobs = np.fromiter(map(_LOGPROB, chain.from_iterable(lists)), np.float64, int(size.sum()))
    starts = np.concatenate(([0], np.cumsum(size)[:-1]))
    return Examined(
        position,
        size,
        np.add.reduceat((logprobs > -np.inf).astype(np.int64), starts),
        np.add.reduceat(np.exp(np.minimum(logprobs, 1.0)), starts),
        np.maximum.reduceat(logprobs, starts),
        np.minimum.reduceat(np.maximum(logprobs, _LOWEST), starts),
    )
