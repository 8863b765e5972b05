"""The sinks of the settings, ready to send."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from compare.alerts.notice import Delivery, Notice
from compare.alerts.sinks.alertmanager import Alertmanager
from compare.alerts.sinks.command import Command
from compare.alerts.sinks.mail import Mail
from compare.alerts.sinks.slack import Slack
from compare.alerts.sinks.webhook import Webhook
from ingest.settings_notify import (
    AlertmanagerSink,
    CommandSink,
    EmailSink,
    NotifySettings,
    SlackSink,
    WebhookSink,
)


class Sink(Protocol):
    """One receiver. `name` is its kind and its name in the settings: `webhook:pager`."""

    name: str

    def send(self, notice: Notice, now: datetime) -> Delivery:
        """Send it; blocks for one run's attempts, about 18 s (a command: its timeout). Raises nothing."""

    def preview(self, notice: Notice, now: datetime) -> str:
        """Return what `send` would send, without any secret."""


def open_sinks(settings: NotifySettings) -> tuple[Sink, ...]:
    """Make every sink of the settings. Connects to nothing; raises nothing for checked settings."""
    return tuple(_open(f"{kind}:{name}", sink) for kind, name, sink in settings.sinks())


def _open(name: str, settings: WebhookSink | AlertmanagerSink | SlackSink | EmailSink | CommandSink) -> Sink:
    match settings:
        case WebhookSink():
            return Webhook(name, settings)
        case AlertmanagerSink():
            return Alertmanager(name, settings)
        case SlackSink():
            return Slack(name, settings)
        case EmailSink():
            return Mail(name, settings)
        case CommandSink():
            return Command(name, settings)
