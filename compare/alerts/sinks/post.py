"""Posting JSON over HTTP: retried within a run, never redirected, no secret in any error."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.message import Message
from typing import IO
from urllib.parse import urlsplit

from compare.alerts.notice import Delivery
from ingest.settings_notify import is_loopback

BACKOFF_S = (0.5, 2.0)
"""Waits between the attempts of one run; the next run tries again."""
TIMEOUT_S = 5.0
_SHOWN_BYTES = 200


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib would turn a redirected POST into a GET without the body."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """Refuse: the redirect is then reported as an error status."""


class Post:
    """Posts to one address. `sleep` is replaced in tests."""

    def __init__(self, url: str, *, sleep: Callable[[float], object] = time.sleep) -> None:
        self._url = url
        self._sleep = sleep
        address = urlsplit(url)
        # A path or a query may hold a token, so only the host is ever named or stored.
        self.host = address.netloc.rpartition("@")[2]
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if is_loopback(address.hostname or ""):
            # A proxy from the environment must never be asked for this machine.
            handlers.append(urllib.request.ProxyHandler({}))
        self._open = urllib.request.build_opener(*handlers).open

    def send(self, body: bytes, headers: Mapping[str, str], *, shows_answer: bool = False) -> Delivery:
        """Post the body until it is taken or refused; blocks about 18 s at most. Raises nothing.

        `shows_answer` puts the beginning of a refusal's text into the error.
        """
        attempt = 0
        while True:
            attempt += 1
            error, is_down = self._post(body, headers, shows_answer)
            if not error:
                return Delivery(attempt)
            if not is_down or attempt > len(BACKOFF_S):
                return Delivery(attempt, f"{self.host}: {error}", is_down)
            self._sleep(BACKOFF_S[attempt - 1])

    def _post(self, body: bytes, headers: Mapping[str, str], shows_answer: bool) -> tuple[str, bool]:
        sent = {"Content-Type": "application/json", "User-Agent": "gnomon", **headers}
        request = urllib.request.Request(self._url, data=body, headers=sent, method="POST")
        try:
            with self._open(request, timeout=TIMEOUT_S) as response:
                response.read(1024)
        except urllib.error.HTTPError as error:
            with error:
                said = f": {_line(error.read(_SHOWN_BYTES))}" if shows_answer else ""
                return f"status {error.code}{said}", error.code in (408, 429) or error.code >= 500
        except urllib.error.URLError as error:
            return str(error.reason), True
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}", True
        return "", False


def _line(answer: bytes) -> str:
    return " ".join(ascii(answer.decode("utf-8", "replace"))[1:-1].split())
