"""The distribution of a baseline in bounded space: mid-ranks whose error is known.

Values are kept in levels, an item of level k standing for 2^k values. A level that holds `CAPACITY` items
is sorted and every second one moves up, the first of each two and the second in turn. Each such step moves
the rank of any value by at most 2^k, and the sum of these is kept as `error`: the truth is within it for
certain. Up to `CAPACITY` - 1 values are kept exactly; n values take about `CAPACITY` * (1 + log2(n /
`CAPACITY`)) numbers at most, and error / n is about log2(2 n / `CAPACITY`) / `CAPACITY` (Manku, Rajagopalan
and Lindsay, 1998).

The same values in the same order give the same sketch, whatever the chunks they came in.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

CAPACITY = 2048

Floats = NDArray[np.float64]


class Sketch(msgspec.Struct, frozen=True):
    """`n` values; `error` bounds how far, in values, any rank is from the truth."""

    n: int = 0
    error: int = 0
    levels: tuple[tuple[float, ...], ...] = ((),)


def extended(sketch: Sketch, values: Sequence[float]) -> Sketch:
    """The sketch with these values added, in this order."""
    levels = [list(level) for level in sketch.levels]
    n, error, start = sketch.n, sketch.error, 0
    while start < len(values):
        taken = values[start : start + CAPACITY - len(levels[0])]
        levels[0] += taken
        n, start = n + len(taken), start + len(taken)
        level = 0
        while len(levels[level]) == CAPACITY:
            if level + 1 == len(levels):
                levels.append([])
            is_odd = n // (CAPACITY << level) % 2
            levels[level + 1] += sorted(levels[level])[is_odd::2]
            levels[level].clear()
            error, level = error + (1 << level), level + 1
    return Sketch(n, error, tuple(tuple(level) for level in levels))


class Ranks:
    """Mid-ranks in a sketch."""

    def __init__(self, sketch: Sketch) -> None:
        self.values = np.concatenate([np.asarray(level, dtype=np.float64) for level in sketch.levels])
        self.weights = np.concatenate(
            [np.full(len(level), 1 << k, dtype=np.int64) for k, level in enumerate(sketch.levels)]
        )
        order = np.argsort(self.values, kind="stable")
        self._sorted = self.values[order]
        self._below = np.concatenate([[0], np.cumsum(self.weights[order])])

    def of(self, x: Floats) -> Floats:
        """The share of the baseline below each value, plus half of the share that equals it: in [0, 1]."""
        left = self._below[np.searchsorted(self._sorted, x, side="left")]
        right = self._below[np.searchsorted(self._sorted, x, side="right")]
        return np.asarray((left + right) / (2.0 * self._below[-1]), dtype=np.float64)
