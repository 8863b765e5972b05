"""The runner's part of no data: looks at each candidate, keeps what is remembered, by the wall clock."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from compare.alerts.alert import Alert
from compare.alerts.alert_log import write_alerts, write_missing
from compare.alerts.fenced import next_version
from compare.alerts.no_data import NoData, NoDataState
from compare.alerts.no_data_store import load_no_data, newest_pair_ms, read_missing, save_no_data
from compare.store.client import Store
from compare.store.table_lease import TableLease
from ingest.settings_alerts import AlertSettings

log = logging.getLogger(__name__)


class NoDataWatch:
    """Raises one alarm a candidate when nothing comparable comes. `clock` gives Unix seconds.

    Any outage of the topic, an endpoint or the service ends here, and moves no detector of drift.
    """

    def __init__(
        self,
        store: Store,
        settings: AlertSettings,
        experiment: str,
        candidates: Sequence[str],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._experiment = experiment
        self._clock = clock
        self._after_ms = int(settings.no_data_after_s * 1000)
        self._detectors = [
            NoData(experiment, name, self._after_ms, int(settings.interval_s * 1000)) for name in candidates
        ]
        self.firing: list[Alert] = []
        """The alarms that were open at the end of the last run."""

    def run(self, lease: TableLease) -> list[Alert]:
        """Look once; return what was raised and resolved. Raises what the store and the lease raise."""
        if not self._after_ms:
            return []
        loaded = [load_no_data(self._store, self._experiment, one.candidate) for one in self._detectors]
        states = [state for state, _, _ in loaded]
        self.firing = [state.alert for state in states if state is not None and state.alert is not None]
        events: list[Alert] = []
        for detector, (state, outbox, version) in zip(self._detectors, loaded, strict=True):
            lease.check()
            # The run that wrote this outbox may have died before it copied it.
            write_missing(self._store, self._experiment, outbox)
            after, raised = self._look(detector, state)
            save_no_data(
                self._store,
                self._experiment,
                detector.candidate,
                after,
                raised,
                after_ms=self._after_ms,
                version=next_version(version, lease.generation),
            )
            lease.check()
            write_alerts(self._store, raised)
            for alert in raised:
                log.warning("alert %s: %s", alert.state, alert.summary)
            self.firing = [one for one in self.firing if one.candidate != detector.candidate]
            self.firing += [] if after.alert is None else [after.alert]
            events += raised
        return events

    def _look(self, detector: NoData, before: NoDataState | None) -> tuple[NoDataState, list[Alert]]:
        now_ms = int(self._clock() * 1000)
        known_ms = 0 if before is None else before.newest_ms
        newest_ms = newest_pair_ms(self._store, self._experiment, detector.candidate, known_ms, now_ms)
        state = detector.look(before, newest_ms, now_ms)
        if detector.is_over(state):
            state, alert = detector.resolve(state)
            return state, [alert]
        if detector.is_due(state):
            since_ms = state.newest_ms or state.silent_since_ms
            missing = read_missing(self._store, self._experiment, detector.candidate, since_ms)
            group_key = next((one.group_key for one in self.firing), None)
            state, alert = detector.fire(state, missing, group_key)
            return state, [alert]
        return state, []
