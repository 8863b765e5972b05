"""What a slice brings to its metric's baseline while that is open: sums, by hour too, and values for ranks.

All sums are whole numbers in steps of 2^-32, so that any cut into chunks gives the same.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from compare.alerts.edetector import ONE
from compare.alerts.sketch import CAPACITY, SLICE_CAPACITY, Sketch, extended, singles

HOUR_MS = 3_600_000
HOURS_KEPT = 168
"""Hours are told apart by their place in the week: a longer baseline adds up the same hours."""
HOUR_VALUES = 256
"""Of a rank metric's hour only the first so many values are kept, as the bytes of 32-bit floats."""


class Moments(msgspec.Struct, frozen=True):
    """Count, sum and sum of squares of x; the sums in steps of 2^-32."""

    n: int = 0
    sum_x: int = 0
    sum_xx: int = 0

    @property
    def mean(self) -> float:
        """The mean of x. Raises ZeroDivisionError where nothing was counted."""
        return self.sum_x / ONE / self.n

    @property
    def variance(self) -> float:
        """The variance of x about its mean, n in the denominator."""
        return max(self.sum_xx / ONE / self.n - self.mean**2, 0.0)


class Part(msgspec.Struct, frozen=True):
    """One slice's part. `sketch` and `hour_values` are of rank metrics, `hours` of the whole experiment.

    For a rank metric x is the score itself: its rank is only known once the baseline is complete.
    """

    moments: Moments = Moments()
    hours: dict[int, Moments] = {}
    sketch: Sketch | None = None
    hour_values: dict[int, bytes] = {}
    first_ms: int | None = None
    """When the first pair was mirrored."""


def moments_of(x: NDArray[np.float64]) -> Moments:
    """Sums of these values; those between -2^20 and 2^20 are safe from overflow."""
    return Moments(
        x.size,
        int(np.floor(x * ONE).astype(np.int64).sum()),
        int(np.floor(x * x * ONE).astype(np.int64).sum()),
    )


def added(one: Moments, other: Moments) -> Moments:
    """The moments of both together."""
    return Moments(one.n + other.n, one.sum_x + other.sum_x, one.sum_xx + other.sum_xx)


def learned(
    part: Part, x: NDArray[np.float64], time_ms: NDArray[np.int64], *, is_rank: bool, is_whole: bool
) -> Part:
    """The part with these values, in fold order, added; `time_ms` is when each was mirrored."""
    if not x.size:
        return part
    first_ms = int(time_ms[0]) if part.first_ms is None else part.first_ms
    slots = _by_hour(time_ms) if is_whole else []
    if is_rank:
        values = dict(part.hour_values)
        for hour, inside in slots:
            kept = values.get(hour, b"")
            room = HOUR_VALUES - len(kept) // 4
            values[hour] = kept + singles(x[inside][:room]).tobytes()
        capacity = CAPACITY if is_whole else SLICE_CAPACITY
        sketch = extended(part.sketch or Sketch(capacity), x)
        counted = Moments(part.moments.n + x.size)
        return Part(counted, sketch=sketch, hour_values=values, first_ms=first_ms)
    hours = dict(part.hours)
    for hour, inside in slots:
        hours[hour] = added(hours.get(hour, Moments()), moments_of(x[inside]))
    return Part(added(part.moments, moments_of(x)), hours, first_ms=first_ms)


def _by_hour(time_ms: NDArray[np.int64]) -> list[tuple[int, NDArray[np.bool_]]]:
    hours = time_ms // HOUR_MS % HOURS_KEPT
    return [(int(hour), hours == hour) for hour in np.unique(hours)]
