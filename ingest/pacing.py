"""Requests a second, evenly spaced."""

from __future__ import annotations

_CREDIT_S = 0.1


class Pace:
    """When the next request may go; times in seconds of any one clock.

    The generic cell rate algorithm (ITU-T I.371): each request takes the next place of a grid of 1 / rate.
    Time that timers lose is made up for, a tenth of a second at most, so that in any span of t seconds there
    are at most rate * (t + 0.1) + 1 requests; below 10 a second no two are closer than 1 / rate.
    """

    def __init__(self, per_second: float | None) -> None:
        """None means no limit."""
        self._interval_s = 0.0 if per_second is None else 1.0 / per_second
        self._credit_s = max(0.0, _CREDIT_S - self._interval_s)
        self._next = float("-inf")

    def wait_s(self, now: float) -> float:
        """Seconds until the next request may go; 0 if it may now."""
        return max(0.0, self._next - now)

    def take(self, now: float) -> None:
        """Note that a request goes now."""
        self._next = max(self._next, now - self._credit_s) + self._interval_s
