"""A job that runs at an interval on its own thread, by APScheduler."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.background import BackgroundScheduler

from ingest.errors import GnomonError

log = logging.getLogger(__name__)


class Ticker:
    """Runs `job` every `interval_s` seconds; never two at a time, missed runs as one.

    An error of the job is logged and the next run comes as planned: it never reaches the pipeline.
    """

    def __init__(self, job: Callable[[], object], interval_s: float, name: str) -> None:
        self._job = job
        self._interval_s = interval_s
        self._name = name
        self._scheduler: BackgroundScheduler | None = None

    def start(self, *, at_once: bool = True) -> None:
        """Begin, with the first run now or after the interval. Does nothing if it runs already."""
        if self._scheduler is not None:
            return
        self._scheduler = BackgroundScheduler(timezone=UTC)
        self._scheduler.add_job(
            self._tick,
            "interval",
            seconds=self._interval_s,
            name=self._name,
            max_instances=1,
            coalesce=True,
            # A run that starts late still runs: the backlog is folded by it.
            misfire_grace_time=None,
            next_run_time=datetime.now(UTC) + timedelta(seconds=0 if at_once else self._interval_s),
        )
        self._scheduler.start()

    def stop(self) -> None:
        """End, waiting for the run that is under way. Does nothing if it does not run."""
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=True)
            self._scheduler = None

    def _tick(self) -> None:
        try:
            self._job()
        except GnomonError as error:
            log.warning("%s: %s", self._name, error)
