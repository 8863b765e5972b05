"""What is left out on purpose while the service is behind."""

from __future__ import annotations

import math
from collections import deque
from datetime import datetime

from ingest.outcome import Skipped, SkipReason
from ingest.records import MirroredRequest
from ingest.replay_plan import share_of
from ingest.settings import DeliverySettings

NEIGHBOURS = 31
"""Records of a partition by whose times it is told how far behind the partition is."""


class Shedder:
    """Sheds requests that are older than `delivery.max_lag_s`, all or some of them.

    How far behind a partition is, the median time of its last records says: a few producers with wrong
    clocks do not move it. A request is shed if the partition is over the lag and the request is too; one
    whose clock is suspect has no age of its own. Not thread-safe.
    """

    def __init__(self, delivery: DeliverySettings, seed: int) -> None:
        """`seed` is the experiment's."""
        self._max_lag_s = delivery.max_lag_s
        self._is_even = delivery.shed == "newest"
        self._seed = seed
        self._times: dict[tuple[str, int], deque[float]] = {}

    def shed(self, mirrored: MirroredRequest, now: datetime) -> Skipped | None:
        """Return the skip of a request that is taken up at `now`, or None if it is replayed."""
        if self._max_lag_s is None:
            return None
        lag_s = self._lag_s(mirrored, now.timestamp())
        if lag_s <= self._max_lag_s:
            return None
        said = f"{lag_s:.0f} s behind, delivery.max_lag_s = {self._max_lag_s:g}"
        if self._is_even:
            one_in = 2 ** math.ceil(math.log2(lag_s / self._max_lag_s))
            if share_of(mirrored.request_id, purpose="shed", seed=self._seed) * one_in < 1.0:
                return None
            said += f", 1 in {one_in} is replayed"
        return Skipped(SkipReason.SHED, said)

    def _lag_s(self, mirrored: MirroredRequest, now_s: float) -> float:
        """Seconds that the request and its partition both are behind; 0 where neither can be told."""
        key = mirrored.position.topic_id, mirrored.position.partition
        times = self._times.setdefault(key, deque(maxlen=NEIGHBOURS))
        own_s = math.inf
        if not mirrored.is_clock_suspect:
            times.append(mirrored.mirrored_at.timestamp())
            own_s = now_s - times[-1]
        if not times:
            return 0.0
        # Of an even number the later one: when in doubt, a request is replayed.
        return max(0.0, min(own_s, now_s - sorted(times)[len(times) // 2]))
