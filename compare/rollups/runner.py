"""Keeps the rollups up to date beside the pipeline."""

from __future__ import annotations

import logging
import threading
import time

from compare.alerts.scheduler import Ticker
from compare.rollups.rebuild import RebuiltDay, Rollups
from compare.store.client import Store
from ingest.errors import RetryError
from ingest.settings import StoreSettings

INTERVAL_S = 60.0
_REST = 9
"""After a run the job rests as many times as long as the run took: a tenth of the time at most is spent."""

_log = logging.getLogger(__name__)


class RollupRunner:
    """Rebuilds what was touched, every minute. One run at a time; `store` is used by nothing else."""

    def __init__(self, store: Store, settings: StoreSettings) -> None:
        self._stopping = threading.Event()
        self._rollups = Rollups(store, settings, stopping=self._stopping)
        self._running = threading.Lock()
        self._rests_until = 0.0
        self._ticker = Ticker(self._tick, INTERVAL_S, "rollups")

    def run_once(self) -> list[RebuiltDay]:
        """Bring every day up to date. Blocks; raises what the store raises."""
        with self._running:
            return self._rollups.rebuild_touched()

    def start(self) -> None:
        """Run every minute on a thread of its own."""
        self._stopping.clear()
        self._ticker.start()

    def stop(self) -> None:
        """Stop after the statement that is under way, if one is. Blocks until then."""
        self._stopping.set()
        self._ticker.stop()
        self._stopping.clear()

    def _tick(self) -> None:
        began = time.monotonic()
        if began < self._rests_until:
            return
        try:
            rebuilt = self.run_once()
        except RetryError:
            if not self._stopping.is_set():
                raise
            return
        took = time.monotonic() - began
        self._rests_until = began + (1 + _REST) * took if rebuilt else 0.0
        for done in rebuilt:
            _log.debug("rollups of %s: %d hours anew in %.1f s", done.day, done.hours, done.seconds)
