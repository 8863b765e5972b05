"""Sending notices: to each sink what it has not received, oldest first, once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from compare.alerts.alert import Alert
from compare.alerts.groups import KEPT, read_groups
from compare.alerts.notice import Delivery, Notice
from compare.alerts.notice_log import Attempt, read_attempts, read_to_send, record_delivery
from compare.alerts.sinks.alertmanager import Alertmanager
from compare.alerts.sinks.opened import Sink
from compare.store.client import Store

FIRST_WAIT_S = 30.0
LONGEST_WAIT_S = 3_600.0
"""A refused notice is tried again after 30 s, then after twice as long each time, up to an hour."""

_log = logging.getLogger(__name__)


def deliver_due(
    store: Store,
    sinks: Sequence[Sink],
    experiment: str,
    now: datetime,
    *,
    alerts: Sequence[Alert] | None = None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Send what each sink lacks, and note how it went. Blocks; raises what the store raises, no sink's error.

    A sink that is down ends this run's sending to it; one that refuses a notice keeps the later ones of that
    group waiting, so that `resolved` never comes before `fired`. The note is written after the answer: only
    a kill in between can send a notice twice, with the same key. `alerts` are those of `read_current` where
    they are known.
    """
    if not sinks:
        return
    notices = read_to_send(store, experiment, now - KEPT)
    for sink in sinks:
        attempts = read_attempts(store, experiment, sink.name, now - KEPT - timedelta(days=1))
        _send_all(store, sink, notices, attempts, now, check)
    managers = [sink for sink in sinks if isinstance(sink, Alertmanager)]
    if managers:
        groups = read_groups(store, experiment, now, alerts=alerts)
        firing = [group.notices[-1] for group in groups if group.notices and group.loud(now)]
        for sink in managers:
            _keep_alive(sink, [notice for notice in firing if notice.state == "firing"], now, check)


def _send_all(
    store: Store,
    sink: Sink,
    notices: Sequence[Notice],
    attempts: dict[str, Attempt],
    now: datetime,
    check: Callable[[], None],
) -> None:
    held: set[str] = set()
    for notice in notices:
        attempt = attempts.get(notice.key, Attempt(False, False, 0, now))
        if attempt.is_delivered or notice.group_key in held:
            continue
        check()
        if _is_outdated(notice, notices):
            # Whoever was away for a day does not want all reminders of it.
            record_delivery(store, notice, sink.name, Delivery(0), earlier=attempt.attempts, now=now)
            continue
        if attempt.is_refused and now - attempt.attempted_at < _wait(attempt.attempts):
            held.add(notice.group_key)
            continue
        delivery = sink.send(notice, now)
        record_delivery(store, notice, sink.name, delivery, earlier=attempt.attempts, now=now)
        if delivery.error:
            _log.warning(
                "%s: notice %s (%s) not received: %s; tried again later",
                sink.name,
                notice.key,
                notice.reason,
                delivery.error,
            )
            held.add(notice.group_key)
        if delivery.is_down:
            return


def _wait(attempts: int) -> timedelta:
    return timedelta(seconds=min(FIRST_WAIT_S * 2.0 ** min(attempts - 1, 16), LONGEST_WAIT_S))


def _is_outdated(notice: Notice, notices: Sequence[Notice]) -> bool:
    """Whether a reminder or an update has a later notice of its group, which says more."""
    return notice.reason in ("members", "severity", "unsilenced", "reminder") and any(
        one.group_key == notice.group_key and one.number > notice.number for one in notices
    )


def _keep_alive(
    sink: Alertmanager, firing: Sequence[Notice], now: datetime, check: Callable[[], None]
) -> None:
    """Send the firing groups again that were told and are not silenced: unsent, Alertmanager ends them."""
    check()
    delivery = sink.keep_alive(firing, now)
    if delivery is not None and delivery.error:
        _log.warning("%s: firing alerts not sent again: %s", sink.name, delivery.error)
