"""Prometheus Alertmanager, API v2: a group is one alert there, sent again while it fires.

Alertmanager holds states, not messages: it groups, routes, repeats and silences by itself. A firing group is
posted every `resend_s` with an end four times that ahead, so that it ends by itself if nothing is sent any
more; a resolved one is posted once with its end. Labels are an alert's identity, so only what does not
change is a label, but for the severity, by which people route: when that rises, the alert with the lower
one is ended in the same request.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from compare.alerts.alert import Severity
from compare.alerts.notice import Delivery, Notice
from compare.alerts.sinks.post import Post
from compare.alerts.sinks.text import fields, render
from ingest.settings_notify import AlertmanagerSink

ALIVE_FOR = 4
"""A firing alert ends so many `resend_s` after it was last sent."""
_NAMES = {
    "drift": "GnomonDrift",
    "accounting": "GnomonAccounting",
    "no_data": "GnomonNoData",
    "golden": "GnomonGolden",
    "rollback": "GnomonRollback",
}


class Alertmanager:
    """One Alertmanager. Remembers when it was last sent what fires; used by one thread."""

    def __init__(
        self, name: str, settings: AlertmanagerSink, *, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self.name = name
        self._settings = settings
        self._post = Post(settings.url.rstrip("/") + "/api/v2/alerts", sleep=sleep)
        self._sent_at: datetime | None = None

    def send(self, notice: Notice, now: datetime) -> Delivery:
        """Post one notice. See `Sink`."""
        return self._send(self._alerts(notice, now))

    def keep_alive(self, notices: Sequence[Notice], now: datetime) -> Delivery | None:
        """Post the last notices of all groups that fire, if `resend_s` has passed since the last time."""
        if not notices or (
            self._sent_at is not None and now - self._sent_at < timedelta(seconds=self._settings.resend_s)
        ):
            return None
        self._sent_at = now
        return self._send([alert for notice in notices for alert in self._alerts(notice, now)])

    def preview(self, notice: Notice, now: datetime) -> str:
        """The request, without its authorization. See `Sink`."""
        body = msgspec.json.format(msgspec.json.encode(self._alerts(notice, now)), indent=2).decode()
        return f"POST to {self._post.host}, path /api/v2/alerts\n\n{body}"

    def _send(self, alerts: list[dict[str, Any]]) -> Delivery:
        headers: dict[str, str] = {}
        if self._settings.username is not None:
            pair = f"{self._settings.username}:{self._settings.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        return self._post.send(msgspec.json.encode(alerts), headers, shows_answer=True)

    def _alerts(self, notice: Notice, now: datetime) -> list[dict[str, Any]]:
        is_firing = notice.state == "firing"
        alive_until = now + timedelta(seconds=ALIVE_FOR * self._settings.resend_s)
        found = [self._alert(notice, notice.severity, alive_until if is_firing else now, now)]
        lower = sorted(set(notice.told_severities) - {notice.severity})
        found += [self._alert(notice, severity, now, now) for severity in lower]
        return found

    def _alert(self, notice: Notice, severity: Severity, ends_at: datetime, now: datetime) -> dict[str, Any]:
        title, body = render(notice, self._settings)
        told = fields(notice)
        alert: dict[str, Any] = {
            "labels": {
                "alertname": _NAMES[notice.category],
                "experiment": notice.experiment,
                "candidate": notice.candidate,
                "category": notice.category,
                "severity": severity,
                "group": notice.group_key,
                **self._settings.labels,
            },
            "annotations": {
                "summary": title,
                "description": body,
                "command": told["command"],
                "acknowledged": told["acknowledged"],
                "runbook": told["runbook"],
            },
            # An alert may not end before it starts; clocks differ.
            "startsAt": min(notice.started_at, now, ends_at),
            "endsAt": ends_at,
        }
        if notice.link:
            alert["generatorURL"] = notice.link
        return alert
