"""Slack's incoming webhook.

Slack gives `&`, `<` and `>` a meaning (`<!channel>` calls everybody, `<url|text>` hides an address), so they
are escaped in every field that comes from a notice; and the text stands in `plain_text` blocks, where no
asterisk or underscore means anything either. Only our own links stand in `mrkdwn`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from compare.alerts.notice import Delivery, Notice
from compare.alerts.sinks.post import Post
from compare.alerts.sinks.text import render
from ingest.settings_notify import SlackSink

LONGEST_HEADER = 150
LONGEST_SECTION = 3_000
MOST_SECTIONS = 5


class Slack:
    """One channel's webhook. Its whole address is a secret: only the host is ever shown."""

    def __init__(
        self, name: str, settings: SlackSink, *, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self.name = name
        self._settings = settings
        assert settings.secret_url is not None, "checked with the settings"
        self._post = Post(settings.secret_url, sleep=sleep)

    def send(self, notice: Notice, now: datetime) -> Delivery:
        """Post one notice. Slack knows no idempotency key. See `Sink`."""
        return self._post.send(msgspec.json.encode(self._message(notice)), {}, shows_answer=True)

    def preview(self, notice: Notice, now: datetime) -> str:
        """The request, its path left out. See `Sink`."""
        body = msgspec.json.format(msgspec.json.encode(self._message(notice)), indent=2).decode()
        return f"POST to {self._post.host}\n\n{body}"

    def _message(self, notice: Notice) -> dict[str, Any]:
        title, body = render(notice, self._settings, escape)
        blocks: list[dict[str, Any]] = [{"type": "header", "text": _plain(cut(title, LONGEST_HEADER))}]
        blocks += [{"type": "section", "text": _plain(part)} for part in _sections(body)]
        if notice.link:
            # Percent-encoded by us: it holds no `|` and no `>`.
            text = {"type": "mrkdwn", "text": f"<{escape(notice.link)}|Open the explorer>"}
            blocks.append({"type": "section", "text": text})
        return {"text": cut(title, LONGEST_SECTION), "blocks": blocks}


def escape(text: str) -> str:
    """Escape Slack's three control characters."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def cut(text: str, longest: int) -> str:
    """At most `longest` characters, never ending within an escape."""
    if len(text) <= longest:
        return text
    kept = text[: longest - 1]
    ampersand = kept.rfind("&")
    if ampersand > kept.rfind(";"):
        kept = kept[:ampersand]
    return kept + "…"


def _sections(body: str) -> list[str]:
    """The body's lines in parts that Slack takes; the rest is left out and said so."""
    parts = [""]
    for line in body.splitlines(keepends=True):
        line = cut(line, LONGEST_SECTION - 50)
        if len(parts[-1]) + len(line) > LONGEST_SECTION - 50:
            parts.append("")
        parts[-1] += line
    if len(parts) > MOST_SECTIONS:
        parts = parts[:MOST_SECTIONS]
        parts[-1] += "(more by gnomon alerts show)"
    return [part for part in parts if part.strip()]


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}
