"""Watches the share of dead letters, so that a broken producer stops its partition and not the job."""

from __future__ import annotations

from collections import deque

WINDOW_RECORDS = 1000


class DeadLetterRate:
    """Dead letters among the last 1,000 records of each partition."""

    def __init__(self, max_share: float) -> None:
        self._most = max_share * WINDOW_RECORDS
        self._last: dict[int, deque[bool]] = {}
        self._dead: dict[int, int] = {}

    def is_over(self, partition: int, *, is_dead: bool) -> bool:
        """Note one record; whether the partition's dead letters exceed the share of a full window.

        So the first dead letter of a new partition is not 100 %.
        """
        last = self._last.setdefault(partition, deque())
        last.append(is_dead)
        dead = self._dead.get(partition, 0) + is_dead
        if len(last) > WINDOW_RECORDS:
            dead -= last.popleft()
        self._dead[partition] = dead
        return dead > self._most

    def forget(self, partition: int) -> None:
        """Begin anew with this partition."""
        self._last.pop(partition, None)
        self._dead.pop(partition, None)
