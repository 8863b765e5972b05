"""Sending alerts to a webhook: JSON, signed, with an idempotency key, retried.

A receiver gets each state of an alert once. Only a kill between its answer and our note of it can make
that twice, with the same `Idempotency-Key`.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from typing import IO
from urllib.parse import urlsplit

import msgspec

from compare.alerts.alert import Alert

SIGNATURE_HEADER = "X-Gnomon-Signature"
SCHEMA = "gnomon.alert/1"
BACKOFF_S = (0.5, 2.0)
"""Waits between the attempts of one run; the next run tries again."""
TIMEOUT_S = 5.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def sign(secret: str, body: bytes) -> str:
    """`sha256=` and the hex HMAC-SHA256 of the body, as a receiver must compute it."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class Delivery(msgspec.Struct, frozen=True):
    """How sending went. `error` is one line, empty where the receiver answered 2xx.

    `is_down` says that the receiver cannot take anything now; else it refused this one alert.
    """

    attempts: int
    error: str = ""
    is_down: bool = False


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib would turn a redirected POST into a GET without the body."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """Refuse: the redirect is then reported as an error status."""


class Webhook:
    """One receiver. `sleep` is replaced in tests."""

    def __init__(
        self, url: str, secret: str | None = None, *, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self._url = url
        self._secret = secret
        self._sleep = sleep
        address = urlsplit(url)
        # A path or a query may hold a token, so only the host is ever named or stored.
        self.host = address.netloc.rpartition("@")[2]
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if address.hostname in LOOPBACK:
            # A proxy from the environment must never be asked for this machine.
            handlers.append(urllib.request.ProxyHandler({}))
        self._open = urllib.request.build_opener(*handlers).open
        self.sink = "webhook:" + hashlib.sha256(url.encode()).hexdigest()[:16]

    def send(self, alert: Alert) -> Delivery:
        """Post one alert; blocks for the attempts of one run, about 18 s at most. Raises nothing."""
        body = msgspec.json.encode({"schema": SCHEMA, "alert": alert})
        attempt = 0
        while True:
            attempt += 1
            error, is_down = self._post(body, alert.key)
            if not error:
                return Delivery(attempt)
            if not is_down or attempt > len(BACKOFF_S):
                text = f"webhook {self.host}: alert {alert.alert_id} ({alert.state}) not received: {error}"
                return Delivery(attempt, text, is_down)
            self._sleep(BACKOFF_S[attempt - 1])

    def _post(self, body: bytes, key: str) -> tuple[str, bool]:
        headers = {"Content-Type": "application/json", "Idempotency-Key": key, "User-Agent": "gnomon"}
        if self._secret:
            headers[SIGNATURE_HEADER] = sign(self._secret, body)
        request = urllib.request.Request(self._url, data=body, headers=headers, method="POST")
        try:
            with self._open(request, timeout=TIMEOUT_S) as response:
                response.read(1024)
        except urllib.error.HTTPError as error:
            with error:
                return f"status {error.code}", error.code in (408, 429) or error.code >= 500
        except urllib.error.URLError as error:
            return str(error.reason), True
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}", True
        return "", False
