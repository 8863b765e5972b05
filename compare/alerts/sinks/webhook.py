"""The webhook: JSON, signed, with an idempotency key.

A receiver gets each notice once. Only a kill between its answer and our note of it can make that twice,
with the same `Idempotency-Key`.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from datetime import datetime

import msgspec

from compare.alerts.notice import Delivery, Notice
from compare.alerts.sinks.post import Post
from compare.alerts.sinks.text import render
from ingest.settings_notify import WebhookSink

SIGNATURE_HEADER = "X-Gnomon-Signature"
SCHEMA = "gnomon.notice/1"


def sign(secret: str, body: bytes) -> str:
    """`sha256=` and the hex HMAC-SHA256 of the body, as a receiver must compute it."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class Webhook:
    """One receiver. `sleep` is replaced in tests."""

    def __init__(
        self, name: str, settings: WebhookSink, *, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self.name = name
        self._settings = settings
        self._post = Post(settings.url, sleep=sleep)

    def send(self, notice: Notice, now: datetime) -> Delivery:
        """Post one notice. See `Sink`."""
        body = self._body(notice)
        headers = {"Idempotency-Key": notice.key}
        if self._settings.secret:
            headers[SIGNATURE_HEADER] = sign(self._settings.secret, body)
        return self._post.send(body, headers)

    def preview(self, notice: Notice, now: datetime) -> str:
        """The request, the signature left out. See `Sink`."""
        signed = f"\n{SIGNATURE_HEADER}: sha256=..." if self._settings.secret else ""
        body = msgspec.json.format(self._body(notice), indent=2).decode()
        return f"POST to {self._post.host}\nIdempotency-Key: {notice.key}{signed}\n\n{body}"

    def _body(self, notice: Notice) -> bytes:
        title, body = render(notice, self._settings)
        return msgspec.json.encode({"schema": SCHEMA, "title": title, "body": body, "notice": notice})
