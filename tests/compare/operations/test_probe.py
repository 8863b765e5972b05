from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 503)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def asked(url: str) -> subprocess.CompletedProcess[str]:
    # A proxy of the container's environment is not for its own health.
    return subprocess.run(
        [sys.executable, "-m", "compare.operations.probe", url],
        env={"PATH": "", "http_proxy": "http://127.0.0.1:1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_a_page_that_answers_is_healthy(port: int) -> None:
    done = asked(f"http://127.0.0.1:{port}/healthz")
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_and_nobody_are_one_line_and_a_code(port: int) -> None:
    done = asked(f"http://127.0.0.1:{port}/readyz")
    assert done.returncode == 1
    assert done.stderr == f"http://127.0.0.1:{port}/readyz: Service Unavailable\n"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    done = asked(f"http://127.0.0.1:{free}/healthz")
    assert done.returncode == 1
    assert "Connection refused" in done.stderr
    assert len(done.stderr.splitlines()) == 1
