"""The accounting, counted at most once a minute for an experiment of many pairs, however many look at it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pandas as pd

from dashboards import queries
from dashboards.asked import Asked
from dashboards.summary import Series

KEPT_S = 60.0


class Accounts:
    """`queries.accounting` of each experiment. Called from any thread.

    Counting 10 million positions takes a processor most of a second. While one caller counts anew, the others
    get what was counted before, if anything was.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counted: dict[str, tuple[float, pd.DataFrame]] = {}
        self._counting: dict[str, threading.Lock] = {}

    def of(self, store: Asked, series: Series) -> pd.DataFrame:
        """The row of the series' experiment, counted now or, where it is read from rollups, a minute ago.

        Raises what the store raises.
        """
        if series.until is None:
            return queries.accounting(store, series.experiment)
        name = series.experiment
        lock = self._counting.setdefault(name, threading.Lock())
        at, known = self._counted.get(name, (0.0, None))
        if known is not None and self._clock() - at < KEPT_S:
            return known
        if not lock.acquire(blocking=known is None):
            assert known is not None
            return known
        try:
            at, known = self._counted.get(name, (0.0, None))
            # Another may have counted while this one waited.
            if known is None or self._clock() - at >= KEPT_S:
                known = queries.accounting(store, name)
                self._counted[name] = (self._clock(), known)
            return known
        finally:
            lock.release()
