"""A proxy that asks a model server each question once and gives the same answer again ever after."""

from __future__ import annotations

import http.client
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

_UNREAD = ("cache_salt", "seed", "user")
"""Fields that do not change a greedy answer of a server with one slot and no prompt cache."""
HURRY = 20.0
"""A remembered answer takes its first time divided by this, so that the sides keep their ratio."""


class _Answer(NamedTuple):
    status: int
    content_type: str
    body: bytes
    seconds: float


class RememberingProxy:
    """Listens on a free loopback port and asks `target` (host:port), which may be replaced.

    `asked` and `remembered` count the answers of either kind. GET requests are always passed on.
    """

    def __init__(self, target: str) -> None:
        self.asked = self.remembered = 0
        self._target = target
        self._answers: dict[tuple[str, bytes], _Answer] = {}
        self._one_by_one = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._give(outer._ask("GET", self.path, b""))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                self._give(outer._answer(self.path, body))

            def _give(self, answer: _Answer) -> None:
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.content_type)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, format: str, *args: Any) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def retarget(self, target: str) -> None:
        """Ask another server from now on; its answers are remembered apart."""
        self._target = target

    def _answer(self, path: str, body: bytes) -> _Answer:
        fields = msgspec.json.decode(body)
        key = (
            self._target + path,
            msgspec.json.encode({name: value for name, value in fields.items() if name not in _UNREAD}),
        )
        known = self._answers.get(key)
        if known is not None:
            self.remembered += 1
            time.sleep(known.seconds / HURRY)
            return known
        with self._one_by_one:
            answer = self._ask("POST", path, body)
        self.asked += 1
        if answer.status == 200:
            self._answers[key] = answer
        return answer

    def _ask(self, method: str, path: str, body: bytes) -> _Answer:
        began = time.monotonic()
        connection = http.client.HTTPConnection(self._target, timeout=600)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            reply = connection.getresponse()
            content = reply.read()
            kind = reply.headers.get("Content-Type", "application/json")
            return _Answer(reply.status, kind, content, time.monotonic() - began)
        finally:
            connection.close()
