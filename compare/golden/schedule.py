"""Runs the set of `[golden]` by the clock, and raises its alert. Of several processes one runs it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

from compare.alerts.scheduler import Ticker
from compare.golden.alerting import raise_alerts
from compare.golden.case import GoldenCase
from compare.golden.report import headline
from compare.golden.run import GoldenRun, Limits
from compare.golden.run_log import read_runs
from compare.golden.session import Outcome, asked_endpoints, run_alone
from compare.golden.sets import read_cases
from compare.store.client import Store
from compare.store.table_lease import TableLease, lease_name
from ingest.settings import Settings

LOOK_S = 60.0
"""How often it is looked whether a run is due."""
LEASE_S = 60.0
"""A process that dies is replaced within this and `LOOK_S`."""

_log = logging.getLogger(__name__)


class RunsSets(Protocol):
    """Runs a set against one endpoint and stores what came of it. Blocks."""

    def __call__(self, set_name: str, cases: Sequence[GoldenCase], endpoint: str, limits: Limits) -> Outcome:
        """Raises GnomonError where it cannot."""
        ...


class GoldenSchedule:
    """Runs `golden.set` every `golden.interval_s`, counted from the start of the last scheduled run.

    That run may have been another process's: a run is due once, whoever is there, and the lease lets one
    process run it. `store` is used by nothing else. Without `golden.set` it does nothing.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        execute: RunsSets,
        *,
        is_ready: Callable[[], bool] = lambda: True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Raises FatalError where `golden.endpoints` names one that is not of the experiment."""
        self._store = store
        self._settings = settings
        self._golden = settings.golden
        self._execute = execute
        self._is_ready = is_ready
        self._now = now
        self._endpoints = asked_endpoints(settings)
        self._has_said_empty = False
        self._latest: dict[str, GoldenRun] = {}
        name = settings.experiment.name
        self._lease = TableLease(
            store,
            lease_name("golden", name),
            f"the golden runs of {name}",
            lease_seconds=LEASE_S,
            cluster=settings.store.cluster,
        )
        self._ticker = Ticker(self.run_once, min(LOOK_S, self._golden.interval_s), f"golden runs of {name}")

    def start(self) -> None:
        """Look now and every minute, on a thread of its own."""
        if self._golden.set is not None:
            self._ticker.start()

    def stop(self) -> None:
        """Stop, after the run that is under way."""
        self._ticker.stop()

    def read_latest(self) -> list[GoldenRun]:
        """The last whole scheduled run of each endpoint, as of the last look. From any thread."""
        return list(self._latest.values())

    def run_once(self) -> list[Outcome]:
        """Run what is due, and raise or resolve the set's alerts. Blocks. Raises what the store raises."""
        set_name = self._golden.set
        if set_name is None or not self._is_ready():
            return []
        done: list[Outcome] = []
        if self._due(set_name) and self._lease.take():
            try:
                # Another one may have run it since we looked.
                for endpoint in self._due(set_name):
                    done += self._run(set_name, endpoint)
            finally:
                self._lease.give_back()
        for endpoint in self._endpoints:
            for alert in raise_alerts(
                self._store,
                self._golden,
                self._settings.experiment.name,
                set_name,
                endpoint,
                in_a_row=self._settings.rollback.golden_runs,
            ):
                _log.warning("alert %s: %s", alert.state, alert.summary)
        return done

    def _due(self, set_name: str) -> list[str]:
        """The endpoints whose last scheduled run began an interval ago, or never."""
        since = self._now() - timedelta(seconds=self._golden.interval_s)
        due = []
        for endpoint in self._endpoints:
            runs = [run for run in self._runs(set_name, endpoint) if run.started_by == "schedule"]
            if all(run.started_at <= since for run in runs):
                due.append(endpoint)
            self._note(runs)
        return due

    def _note(self, runs: Sequence[GoldenRun]) -> None:
        """Remember the newest whole one; `runs` are the newest first."""
        whole = next((run for run in runs if run.status != "incomplete"), None)
        if whole is not None:
            self._latest = self._latest | {whole.endpoint_name: whole}

    def _runs(self, set_name: str, endpoint: str) -> list[GoldenRun]:
        name = self._settings.experiment.name
        return read_runs(self._store, set_name, experiment=name, endpoint_name=endpoint)

    def _run(self, set_name: str, endpoint: str) -> list[Outcome]:
        cases = read_cases(self._store, set_name)
        if not cases:
            if not self._has_said_empty:
                _log.warning("golden set %s has no cases: nothing is run", set_name)
            self._has_said_empty = True
            return []
        limits = Limits(self._golden.warn_mean_score, self._golden.allow_failed)
        outcome = self._execute(set_name, cases, endpoint, limits)
        self._note([outcome.run])
        level = logging.INFO if outcome.run.is_passed else logging.WARNING
        _log.log(level, "golden run: %s", headline(outcome.run))
        return [outcome]


def alone(store: Store, settings: Settings) -> RunsSets:
    """Runs sets with a replayer and a comparison of their own: where no service runs (`gnomon watch`)."""

    def execute(set_name: str, cases: Sequence[GoldenCase], endpoint: str, limits: Limits) -> Outcome:
        (outcome,) = run_alone(settings, store, set_name, cases, [endpoint], "schedule", limits)
        return outcome

    return execute
