"""`gnomon status` on a real embedded store, with and without a service to ask."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from compare.cli.main import cli
from compare.operations.ask_ready import ask_ready
from compare.store import open_store
from compare.writer import Writer
from ingest.settings import OperationsSettings, StoreSettings
from tests.compare import batches
from tests.fixtures.stores import MigratedAt

SETTINGS = """
[experiment]
name = "e"
reference = "full"
candidates = ["small"]
models = {{ "*" = {{ full = "m", small = "m" }} }}

[endpoints.full]
url = "http://127.0.0.1:1"

[endpoints.small]
url = "http://127.0.0.1:2"

[store]
url = "chdb://{folder}"

[operations]
port = {port}
"""


@contextmanager
def answering(code: int, body: bytes) -> Iterator[int]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 - the base class's name
            self.send_response(code if self.path == "/readyz" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_open_breaker_and_the_records_that_met_nobody_are_told(
    tmp_path: Path, migrated_at: MigratedAt
) -> None:
    folder, config = tmp_path / "store", tmp_path / "gnomon.toml"
    migrated_at(folder)
    now = datetime.now(UTC)
    why = 'endpoint "small" (h:1) is away after 3 attempts: connection refused'
    with open_store(StoreSettings(url=f"chdb://{folder}"), role="owner") as store:
        others = tuple(
            msgspec.structs.replace(batches.other(n, "failed", "endpoint_away"), ingested_at=now, detail=why)
            for n in range(8)
        )
        Writer(store, threading.Event()).write(batches.batch(others=others))
    away = json.dumps({"status": "not ready", "reasons": ["endpoints away: small", "stopping"]}).encode()
    with answering(503, away) as port:
        config.write_text(SETTINGS.format(folder=folder, port=port))
        told = CliRunner().invoke(cli, ["status", "--config", str(config)])
    assert told.output.splitlines() == [
        f"service at 127.0.0.1:{port}: not ready: endpoints away: small; stopping",
        "nothing is paused",
        f'last hour: 8 records of experiment "{batches.batch().experiment}" failed '
        f"(endpoint_away), the last at {now:%H:%M:%S} UTC: {why}",
        "today: no tokens were counted",
    ]


@pytest.mark.parametrize(
    ("code", "body", "told"),
    [
        (200, b'{"status": "ready", "reasons": []}', "service at 127.0.0.1:{}: ready"),
        (200, b"<html>", "service: what answers at 127.0.0.1:{} is no gnomon run"),
        (404, b"[]", "service: what answers at 127.0.0.1:{} is no gnomon run"),
    ],
)
def test_what_the_service_says(code: int, body: bytes, told: str) -> None:
    with answering(code, body) as port:
        assert ask_ready(OperationsSettings(port=port, host="0.0.0.0")) == told.format(port)


def test_no_service(unused_tcp_port: int) -> None:
    assert ask_ready(OperationsSettings()) is None
    assert ask_ready(OperationsSettings(port=0)) is None
    line = ask_ready(OperationsSettings(port=unused_tcp_port))
    assert line == f"service: none answers at 127.0.0.1:{unused_tcp_port} (Connection refused)"


def test_a_connection_that_breaks_within_the_answer_is_no_traceback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def break_off() -> None:
            other, _ = server.accept()
            with other:
                other.recv(1024)
                other.sendall(b"HTTP/1.1 503 Away\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nbroken")

        thread = threading.Thread(target=break_off)
        thread.start()
        port = server.getsockname()[1]
        line = ask_ready(OperationsSettings(port=port))
        thread.join()
    assert line is not None
    assert line.startswith(f"service: none answers at 127.0.0.1:{port} (IncompleteRead")
