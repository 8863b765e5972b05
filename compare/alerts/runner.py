"""The alert runner: folds what is new, stores state and alerts, sends them. Safe to kill anywhere."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from compare.alerts.alert import Alert, Severity
from compare.alerts.alert_log import write_alerts, write_missing
from compare.alerts.catch_up import CatchUp, backlog
from compare.alerts.fenced import generation_of, least_generation, next_version
from compare.alerts.fold import FoldState
from compare.alerts.life import run_life
from compare.alerts.no_data_watch import NoDataWatch
from compare.alerts.scheduler import Ticker
from compare.alerts.sinks import open_sinks
from compare.alerts.state import load_state, save_state
from compare.alerts.status import RunnerStatus
from compare.store.client import Store
from compare.store.table_lease import TableLease, lease_name
from ingest.errors import GnomonError
from ingest.settings_alerts import AlertSettings
from ingest.settings_notify import NotifySettings

_SAY_AGAIN_S = 5.0

log = logging.getLogger(__name__)


class AlertRunner:
    """Watches one experiment's candidates.

    State is read from the store at each run and none is kept between runs, so a run after a crash, a
    failed insert or a restart is like any other. Of several runners of an experiment one acts: the one
    with the lease. From `start` to `stop` the lease is kept; a run of its own gives it back at its end.
    """

    def __init__(
        self,
        store: Store,
        settings: AlertSettings,
        experiment: str,
        candidates: Sequence[str],
        *,
        notify: NotifySettings | None = None,
        cluster: str | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._experiment = experiment
        self._candidates = tuple(candidates)
        self._notify = notify or NotifySettings()
        self._sinks = open_sinks(self._notify)
        what = f"the alert lease of {experiment}"
        self._lease = TableLease(
            store, lease_name("alert", experiment), what, lease_seconds=settings.lease_s, cluster=cluster
        )
        self._no_data = NoDataWatch(store, settings, experiment, self._candidates)
        # A caller's own run and a scheduled one must not fold the same pairs side by side.
        self._running = threading.Lock()
        self._stopping = threading.Event()
        self._keeps_lease = False
        self._said_of = ""
        self._copied: dict[str, int] = {}
        """By candidate, the version of the state whose outbox is known to be in the alerts table."""
        self._status = RunnerStatus()
        self._ticker = Ticker(self._tick, settings.interval_s, f"alerts of {experiment}")

    def read_status(self) -> RunnerStatus:
        """How the runner stands now. From any thread."""
        status = self._status
        is_leader = self._lease.is_held
        return msgspec.structs.replace(status, is_leader=is_leader, firing=status.firing if is_leader else {})

    @property
    def watched_by(self) -> str | None:
        """The process that watched instead when the last run found the lease taken, as `host:pid`."""
        return None if self._lease.other is None else self._lease.other.holder

    def run_once(self) -> list[Alert]:
        """Fold every settled pair that is new; return the alerts that fired or were resolved, in order.

        Returns none if another process watches the experiment. Blocks. Raises what the store raises, and
        RetryError if the lease is lost on the way; what was not stored is folded again by the next run.
        A receiver that is down is logged, and tried again by the next run.
        """
        with self._running:
            if not self._lead():
                return []
            try:
                events = self._run()
            finally:
                if not self._keeps_lease:
                    self._lease.give_back()
            self._status = msgspec.structs.replace(self._status, last_run_s=time.time())
            return events

    def start(self) -> None:
        """Run every `interval_s` seconds on a thread of its own."""
        self._keeps_lease = True
        self._ticker.start()

    def stop(self) -> None:
        """Stop after the chunk that is under way, if one is, and give the lease back. Blocks until then."""
        self._stopping.set()
        self._ticker.stop()
        self._keeps_lease = False
        with self._running:
            self._lease.give_back()
        self._stopping.clear()

    def _tick(self) -> None:
        try:
            self.run_once()
        except GnomonError:
            self._status = msgspec.structs.replace(self._status, failed_runs=self._status.failed_runs + 1)
            raise

    def _lead(self) -> bool:
        """Whether the lease is ours, taking it if nobody has it."""
        if self._lease.is_held:
            return True
        # Ours may have run out while the store was away or the process stood still.
        self._lease.give_back()
        if self._lease.take(at_least=least_generation(self._store, self._experiment)):
            log.info("alerts of %s: watching, generation %d", self._experiment, self._lease.generation)
            self._said_of = ""
            return True
        other = self._lease.other
        if other is not None and other.token != self._said_of:
            self._said_of = other.token
            log.info("alerts of %s: watched by %s, standing by", self._experiment, other.holder)
        return False

    def _run(self) -> list[Alert]:
        self._status = msgspec.structs.replace(self._status, backlog=0)
        firing: Counter[Severity] = Counter()
        events: list[Alert] = []
        for candidate in self._candidates:
            state, found = self._fold(candidate)
            events += found
            firing.update(one.alert.severity for one in state.series.values() if one.alert is not None)
        events += self._no_data.run(self._lease)
        firing.update(alert.severity for alert in self._no_data.firing)
        self._status = msgspec.structs.replace(self._status, firing=dict(firing))
        if not self._stopping.is_set():
            now = datetime.now(UTC)
            run_life(self._store, self._notify, self._sinks, self._experiment, now, check=self._lease.check)
        return events

    def _fold(self, candidate: str) -> tuple[FoldState, list[Alert]]:
        state, outbox = load_state(self._store, self._experiment, candidate)
        if self._copied.get(candidate) != state.version:
            # The run that wrote this outbox may have died before it copied it.
            self._lease.check()
            write_missing(self._store, self._experiment, outbox)
            self._copied[candidate] = state.version
        waiting = backlog(self._store, self._experiment, candidate, state.cursors)
        others = self._status.backlog
        catch_up = CatchUp(self._store, self._settings, self._experiment, candidate)
        events: list[Alert] = []
        folded, began = 0, time.monotonic()
        said_at = began + _SAY_AGAIN_S
        while not self._stopping.is_set():
            self._show_backlog(others + max(waiting - folded, 0))
            step = catch_up.step(state, next_version(state.version, self._lease.generation))
            if step is None:
                break
            is_first = generation_of(state.version) != self._lease.generation
            changed = sorted(step.state.series) if is_first else step.changed
            self._lease.check()
            save_state(self._store, self._experiment, candidate, step.state, changed, step.events)
            # Asked after the state is stored: whoever takes over later sees it, and with it these alerts.
            self._lease.check()
            write_alerts(self._store, step.events)
            state = step.state
            self._copied[candidate] = state.version
            for event in step.events:
                log.warning("alert %s: %s", event.state, event.summary)
            events += step.events
            folded += step.pairs
            if not step.is_cut:
                break
            if time.monotonic() > said_at:
                said_at = time.monotonic() + _SAY_AGAIN_S
                self._say_progress(candidate, folded, waiting, began)
        if time.monotonic() - began > _SAY_AGAIN_S:
            self._say_progress(candidate, folded, max(waiting, folded), began)
        self._show_backlog(others + max(waiting - folded, 0))
        return state, events

    def _show_backlog(self, pairs: int) -> None:
        self._status = msgspec.structs.replace(self._status, backlog=pairs)

    def _say_progress(self, candidate: str, folded: int, waiting: int, began: float) -> None:
        log.info(
            "alerts of %s/%s: folded %d of %d pairs, %.0f a second",
            self._experiment, candidate, folded, waiting, folded / (time.monotonic() - began),
        )  # fmt: skip
