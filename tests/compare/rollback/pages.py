"""A server of pages of metrics on a thread of its own."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry, Gauge, generate_latest


class Pages:
    """`/metrics` serves `registry`, or `body` where it is set; `/health` answers `health`.

    `status` is that of `/metrics`. `headers` are those of the last request. Anything else is 404. `delay_s`
    is waited before any answer.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.body: bytes | None = None
        self.status = 200
        self.health = 200
        self.delay_s = 0.0
        self.headers: dict[str, str] = {}
        pages = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                pages.headers = dict(self.headers)
                time.sleep(pages.delay_s)
                status, body = 404, b"no"
                if self.path.startswith("/metrics"):
                    body = generate_latest(pages.registry) if pages.body is None else pages.body
                    status = pages.status
                elif self.path == "/health":
                    status, body = pages.health, b"{}"
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                if status == 302:
                    self.send_header("Location", "/health")
                self.end_headers()
                try:
                    self.wfile.write(body)
                except (BrokenPipeError, ConnectionResetError):
                    # The reader had enough.
                    return

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def gauge(self, name: str, labels: tuple[str, ...] = ()) -> Gauge:
        """Return a gauge on the page."""
        return Gauge(name, name, labels, registry=self.registry)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
