"""Makes a verdict of each candidate by the clock and keeps it. Of several processes one does."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from compare.alerts.scheduler import Ticker
from compare.ship.kept import keep
from compare.ship.model import ShipVerdict, Terms
from compare.ship.read import read_verdict
from compare.ship.statements import bound_line, headline
from compare.store.answer import Result
from compare.store.client import Store
from compare.store.table_lease import TableLease, lease_name
from ingest.errors import RetryError
from ingest.settings_verdict import VerdictSettings

LOOK_S = 60.0
"""How often it is looked whether a verdict is due."""
LEASE_S = 60.0
"""A process that dies is replaced within this and `LOOK_S`."""

_log = logging.getLogger(__name__)


class VerdictSchedule:
    """Makes a verdict of each candidate every `settings.every_s`, counted from the last that was kept.

    That one may be another process's, or a person's at the same margin and confidence. `store` is used by
    nothing else. With `every_s` 0 it does nothing.
    """

    def __init__(
        self,
        store: Store,
        settings: VerdictSettings,
        experiment: str,
        candidates: Sequence[str],
        *,
        cluster: str | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._settings = settings
        self._experiment = experiment
        self._candidates = tuple(candidates)
        self._now = now
        self._stopping = threading.Event()
        self._running = threading.Lock()
        self._lease = TableLease(
            store,
            lease_name("verdict", experiment),
            f"the verdicts of {experiment}",
            lease_seconds=LEASE_S,
            cluster=cluster,
        )
        self._ticker = Ticker(
            self._tick, min(LOOK_S, settings.every_s or LOOK_S), f"verdicts of {experiment}"
        )

    def start(self) -> None:
        """Look now and every minute, on a thread of its own."""
        if self._settings.every_s:
            self._ticker.start()

    def stop(self) -> None:
        """Stop after the statement that is under way: a verdict that is not made by then is given up."""
        self._stopping.set()
        self._ticker.stop()
        self._stopping.clear()

    def run_once(self) -> list[ShipVerdict]:
        """Make and keep what is due. Blocks: see `read_verdict`. Raises what the store raises."""
        if not self._settings.every_s:
            return []
        with self._running:
            if not self._due() or not self._lease.take():
                return []
            try:
                # Another one may have made it since we looked.
                return [self._make(candidate) for candidate in self._due()]
            finally:
                self._lease.give_back()

    def _tick(self) -> None:
        try:
            self.run_once()
        except RetryError:
            if not self._stopping.is_set():
                raise

    def _due(self) -> list[str]:
        """The candidates with pairs whose last verdict at these terms was made an interval ago, or never."""
        last = {
            str(candidate): made_at
            for candidate, made_at in self._store.query(
                "SELECT candidate, max(made_at) FROM verdicts_v1 WHERE experiment = {experiment:String}"
                " AND margin = {margin:Float64} AND confidence = {confidence:Float64} GROUP BY candidate",
                {
                    "experiment": self._experiment,
                    "margin": self._settings.margin,
                    "confidence": self._settings.confidence,
                },
            )
        }
        since = self._now() - timedelta(seconds=self._settings.every_s)
        return [
            name
            for name in self._candidates
            if (name not in last or last[name] <= since) and self._has_pairs(name)
        ]

    def _has_pairs(self, candidate: str) -> bool:
        return bool(
            self._store.query(
                "SELECT 1 FROM pairs_v1 WHERE experiment = {experiment:String}"
                " AND candidate = {candidate:String} LIMIT 1",
                {"experiment": self._experiment, "candidate": candidate},
            ).rows
        )

    def _make(self, candidate: str) -> ShipVerdict:
        terms = Terms(self._settings.margin, self._settings.confidence)
        found = read_verdict(_Patient(self._store, self._stopping), self._experiment, candidate, terms)
        keep(self._store, found)
        _log.info("verdict on %s: %s; %s", candidate, headline(found), bound_line(found))
        return found


class _Patient:
    """Asks the store with one core, so that inserts and alerts have the rest; not at all once stopped."""

    def __init__(self, store: Store, stopping: threading.Event) -> None:
        self._store = store
        self._stopping = stopping

    def query(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Result:
        """As `Store.query`. Raises RetryError once it is told to stop."""
        if self._stopping.is_set():
            raise RetryError("the verdict was given up: the process ends")
        return self._store.query(sql, parameters, {**(settings or {}), "max_threads": 1})
