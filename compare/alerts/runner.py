"""The alert runner: folds what is new, stores state and alerts, sends them. Safe to kill anywhere."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import msgspec

from compare.alerts.alert import Alert
from compare.alerts.alert_log import record_delivery, undelivered, write_alerts
from compare.alerts.cursor import hour_started, merge
from compare.alerts.describe import summary
from compare.alerts.evidence import with_evidence
from compare.alerts.fold import Folder, FoldState
from compare.alerts.scheduler import Ticker
from compare.alerts.source import read_feeds, read_seen
from compare.alerts.state import load_state, save_state
from compare.alerts.webhook import Webhook
from compare.store.client import Store
from ingest.settings_alerts import AlertSettings

log = logging.getLogger(__name__)


class AlertRunner:
    """Watches one experiment's candidates.

    State is read from the store at each run and none is kept between runs, so a run after a crash, a
    failed insert or a restart is like any other. One runner at a time may watch an experiment.
    """

    def __init__(
        self,
        store: Store,
        settings: AlertSettings,
        experiment: str,
        candidates: Sequence[str],
        *,
        webhook: Webhook | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._experiment = experiment
        self._candidates = tuple(candidates)
        if webhook is None and settings.webhook_url is not None:
            webhook = Webhook(settings.webhook_url, settings.webhook_secret)
        self._webhook = webhook
        # A caller's own run and a scheduled one must not fold the same pairs side by side.
        self._running = threading.Lock()
        self._copied: dict[str, int] = {}
        """By candidate, the version of the state whose outbox is known to be in the alerts table."""
        self._ticker = Ticker(self.run_once, settings.interval_s, f"alerts of {experiment}")

    def run_once(self) -> list[Alert]:
        """Fold every settled pair that is new; return the alerts that fired or were resolved, in order.

        Blocks. Raises what the store raises; what was not stored is folded again by the next run. A
        receiver that is down is logged, and tried again by the next run.
        """
        with self._running:
            events = [event for candidate in self._candidates for event in self._fold(candidate)]
            if self._webhook is not None:
                self._deliver(self._webhook)
            return events

    def start(self) -> None:
        """Run every `interval_s` seconds on a thread of its own."""
        self._ticker.start()

    def stop(self) -> None:
        """Stop after the run that is under way, if one is. Blocks until then."""
        self._ticker.stop()

    def _fold(self, candidate: str) -> list[Alert]:
        state, outbox = load_state(self._store, self._experiment, candidate)
        if self._copied.get(candidate) != state.version:
            # The run that wrote this outbox may have died before it copied it.
            write_alerts(self._store, outbox)
            self._copied[candidate] = state.version
        events: list[Alert] = []
        is_cut = True
        while is_cut:
            state, chunk, is_cut = self._fold_chunk(candidate, state)
            events += chunk
        return events

    def _fold_chunk(self, candidate: str, state: FoldState) -> tuple[FoldState, list[Alert], bool]:
        """Fold at most `MAX_PAIRS`: read, order, fold, describe, commit."""
        feeds, is_cut = read_feeds(self._store, self._experiment, candidate, state.cursors)
        pairs, cursors = merge(feeds)
        cursors = {**state.cursors, **cursors}
        if cursors == state.cursors:
            return state, [], False
        folder = Folder(
            experiment=self._experiment,
            candidate=candidate,
            settings=self._settings,
            state=state,
            seen=read_seen(self._store, self._experiment, candidate, state.cursors),
        )
        folder.fold(pairs, {key: cursor.next_offset for key, cursor in state.cursors.items()})
        if folder.hour_first is not None:
            cursors = hour_started(cursors, folder.hour_first)
        evident = {
            alert.alert_id: with_evidence(self._store, alert)
            for alert in folder.events
            if alert.state == "firing"
        }
        events = [_filled(alert, evident) for alert in folder.events]
        series = dict(folder.series)
        for key in folder.changed:
            alert = series[key].alert
            if alert is not None:
                series[key] = msgspec.structs.replace(series[key], alert=_filled(alert, evident))
        after = FoldState(state.version + 1, folder.clock_ms, cursors, series)
        save_state(self._store, self._experiment, candidate, after, sorted(folder.changed), events)
        write_alerts(self._store, events)
        self._copied[candidate] = after.version
        for event in events:
            log.warning("alert %s: %s", event.state, event.summary)
        return after, events, is_cut

    def _deliver(self, webhook: Webhook) -> None:
        """Send what the receiver lacks, oldest first, and note how it went.

        A receiver that is down ends this run's sending; one that refuses an alert keeps the later states
        of that alert waiting behind it, so that `resolved` never comes before `firing`.
        """
        refused: set[str] = set()
        for alert in undelivered(self._store, self._experiment, webhook.sink):
            if alert.alert_id in refused:
                continue
            delivery = webhook.send(alert)
            record_delivery(self._store, alert, webhook.sink, delivery)
            if delivery.error:
                log.warning("%s; the next run tries again", delivery.error)
                refused.add(alert.alert_id)
            if delivery.is_down:
                return


def _filled(alert: Alert, evident: dict[str, Alert]) -> Alert:
    """The alert with the evidence that was just read for it, if it fired in this fold."""
    from_store = evident.get(alert.alert_id)
    if from_store is None:
        return alert
    filled = msgspec.structs.replace(alert, families=from_store.families, worst_pairs=from_store.worst_pairs)
    return msgspec.structs.replace(filled, summary=summary(filled))
