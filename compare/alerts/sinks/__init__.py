"""Where notices go: a webhook, Alertmanager, Slack, mail, a command. One module each."""

from __future__ import annotations

from compare.alerts.sinks.opened import Sink, open_sinks

__all__ = ["Sink", "open_sinks"]
