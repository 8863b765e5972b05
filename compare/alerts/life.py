"""The life of an alert after its detector fired: evidence, notices, deliveries.

`run_life` does all of it, once each `interval_s`, after the fold; every part may be killed anywhere and is
taken up by the next run. One process at a time may do it for an experiment (the runner's lease).

    sinks = open_sinks(settings.notify)  # once a process (compare.alerts.sinks)
    run_life(store, settings.notify, sinks, experiment, now, check=lease.check)

It is these three, which may be called by themselves:

    gather_due(store, notify, experiment, now, check=...)   # evidence that is missing or old
    notify_due(store, notify, experiment, now, check=...)   # decides and stores notices; returns the new ones
    deliver_due(store, sinks, experiment, now, check=...)   # sends what each sink has not received
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from compare.alerts.alert import Alert
from compare.alerts.alert_log import read_current
from compare.alerts.deliver import deliver_due
from compare.alerts.evidence_store import read_evidence, write_evidence
from compare.alerts.gather import gather
from compare.alerts.groups import KEPT
from compare.alerts.notice import Notice
from compare.alerts.notify import notify_due
from compare.alerts.sinks.opened import Sink
from compare.store.client import Store
from ingest.errors import GnomonError
from ingest.settings_notify import NotifySettings

MOST_AT_ONCE = 20
"""Alerts whose evidence one run gathers: a notice must not wait for that of a hundred slices."""

_log = logging.getLogger(__name__)


def run_life(
    store: Store,
    settings: NotifySettings,
    sinks: Sequence[Sink],
    experiment: str,
    now: datetime,
    *,
    check: Callable[[], None] = lambda: None,
) -> list[Notice]:
    """Gather, decide, send; return the notices that were decided. Blocks; raises what the store raises.

    `check` is called before each write and each sending, and raises where another process took over. A sink
    that is down, and evidence that cannot be gathered, are logged and tried again by the next run.
    """
    # One reading for all three: under the lease nobody else folds, and what golden runs raise meanwhile is
    # told by the next run.
    alerts = read_current(store, experiment, now - KEPT)
    gather_due(store, settings, experiment, now, alerts=alerts, check=check)
    notices = notify_due(store, settings, experiment, now, alerts=alerts, check=check)
    deliver_due(store, sinks, experiment, now, alerts=alerts, check=check)
    return notices


def gather_due(
    store: Store,
    settings: NotifySettings,
    experiment: str,
    now: datetime,
    *,
    alerts: Sequence[Alert] | None = None,
    check: Callable[[], None] = lambda: None,
) -> int:
    """Gather the evidence of alerts that changed, or that fire and whose evidence is old; return how many.

    At most `MOST_AT_ONCE`, the most important first. `alerts` are those of `read_current` where they are
    known. Blocks; raises what reading alerts and `check` raise.
    """
    if alerts is None:
        alerts = read_current(store, experiment, now - KEPT)
    known = read_evidence(store, experiment, [alert.alert_id for alert in alerts])
    oldest = now - timedelta(seconds=settings.evidence_interval_s)
    due = [
        alert
        for alert in alerts
        if (evidence := known.get(alert.alert_id)) is None
        or evidence.version < alert.version
        or (alert.state == "firing" and evidence.gathered_at <= oldest)
    ]
    due.sort(key=lambda alert: (alert.alert_id in known, alert.dimension != "experiment", _order(alert)))
    for alert in due[:MOST_AT_ONCE]:
        check()
        try:
            write_evidence(store, gather(store, alert, now))
        except GnomonError as error:
            # The alert is told without it: that it fires is what matters most.
            _log.warning("evidence of alert %s cannot be gathered now: %s", alert.alert_id, error)
    return len(due[:MOST_AT_ONCE])


def _order(alert: Alert) -> tuple[bool, str]:
    return alert.severity != "critical", alert.alert_id
