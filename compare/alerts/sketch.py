"""The distribution of a baseline in bounded space: mid-ranks whose error is known.

Values are kept in levels, an item of level k standing for 2^k values. A level that holds `capacity` items is
sorted and every second one moves up, the first of each two and the second in turn. Each such step moves the
rank of any value by at most 2^k, and the sum of these is kept as `error`: the truth is within it for certain.
Up to `capacity` - 1 values are kept exactly; n values take about `capacity` * (1 + log2(n / `capacity`))
numbers at most, and error / n is about log2(2 n / `capacity`) / `capacity` (Manku, Rajagopalan and
Lindsay, 1998).

Values are held, and looked up, as 32-bit floats, which keeps their order. The same values in the same order
give the same sketch, whatever the chunks they came in.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

CAPACITY = 2048
"""Of the whole experiment: about 2 numbers in 1,000 of error with 20,000 values."""
SLICE_CAPACITY = 512

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


class Sketch(msgspec.Struct, frozen=True):
    """`n` values; `error` bounds how far, in values, any rank is from the truth.

    `levels` hold the bytes of little-endian 32-bit floats.
    """

    capacity: int = CAPACITY
    n: int = 0
    error: int = 0
    levels: tuple[bytes, ...] = (b"",)


def extended(sketch: Sketch, values: Floats) -> Sketch:
    """The sketch with these values added, in this order."""
    levels = [numbers(level) for level in sketch.levels]
    n, error, start = sketch.n, sketch.error, 0
    rest = singles(values)
    while start < rest.size:
        taken = rest[start : start + sketch.capacity - levels[0].size]
        levels[0] = np.concatenate([levels[0], taken])
        n, start = n + taken.size, start + taken.size
        level = 0
        while levels[level].size == sketch.capacity:
            if level + 1 == len(levels):
                levels.append(levels[0][:0])
            is_odd = n // (sketch.capacity << level) % 2
            levels[level + 1] = np.concatenate([levels[level + 1], np.sort(levels[level])[is_odd::2]])
            levels[level] = levels[level][:0]
            error, level = error + (1 << level), level + 1
    return Sketch(sketch.capacity, n, error, tuple(level.tobytes() for level in levels))


def singles(values: Floats) -> Singles:
    """The values as little-endian 32-bit floats."""
    # A ratio may be over what 32 bits hold: it is then larger than all others, as it should be.
    limit = float(np.finfo(np.float32).max)
    return np.asarray(np.clip(values, -limit, limit), dtype="<f4")


def numbers(level: bytes) -> Singles:
    """The floats that these bytes hold."""
    return np.frombuffer(level, dtype="<f4")


class Ranks:
    """Mid-ranks in a sketch that holds something."""

    def __init__(self, sketch: Sketch) -> None:
        levels = [numbers(level) for level in sketch.levels]
        self.values = np.concatenate(levels)
        self.weights = np.concatenate(
            [np.full(level.size, 1 << k, dtype=np.int64) for k, level in enumerate(levels)]
        )
        order = np.argsort(self.values, kind="stable")
        self._sorted = self.values[order]
        self._below = np.concatenate([[0], np.cumsum(self.weights[order])])

    def of(self, x: Floats) -> Floats:
        """The share of the baseline below each value, plus half of the share that equals it: in [0, 1]."""
        single = singles(x)
        left = self._below[np.searchsorted(self._sorted, single, side="left")]
        right = self._below[np.searchsorted(self._sorted, single, side="right")]
        return np.asarray((left + right) / (2.0 * self._below[-1]), dtype=np.float64)
