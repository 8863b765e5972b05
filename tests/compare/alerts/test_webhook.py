"""The webhook against a real HTTP server on loopback, and the runner through an outage of it."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import msgspec
import pytest

from compare.alerts.runner import AlertRunner
from compare.alerts.webhook import BACKOFF_S, Webhook
from ingest.settings_alerts import AlertSettings
from tests.compare.alerts.conftest import Writer
from tests.compare.alerts.test_runner import DECLARED, alerts, faulty_run

SECRET = "s3cret"


class Received(NamedTuple):
    headers: dict[str, str]
    body: bytes

    @property
    def alert(self) -> dict[str, Any]:
        document = json.loads(self.body)
        assert document["schema"] == "gnomon.alert/1"
        alert: dict[str, Any] = document["alert"]
        return alert


class Receiver(ThreadingHTTPServer):
    def __init__(self, port: int, statuses: list[int]) -> None:
        self.received: list[Received] = []
        self.statuses = statuses
        super().__init__(("127.0.0.1", port), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append(Received(dict(self.headers.items()), body))
        status = self.server.statuses.pop(0) if self.server.statuses else 204
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def receiver(*statuses: int, port: int = 0) -> Iterator[Receiver]:
    with Receiver(port, list(statuses)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def runner(writer: Writer, port: int, waits: list[float] | None = None) -> AlertRunner:
    webhook = Webhook(
        f"http://127.0.0.1:{port}/hook?token=t0ken",
        SECRET,
        sleep=(waits if waits is not None else []).append,
    )
    return AlertRunner(writer.store, DECLARED, writer.experiment, [writer.candidate], webhook=webhook)


def test_proxy_of_the_environment_is_not_asked_for_loopback(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    faulty_run(writer)
    with receiver() as server:
        runner(writer, server.server_port).run_once()
    assert len(server.received) == 4


def test_receiver_that_was_down_gets_each_alert_once_and_signed(writer: Writer) -> None:
    faulty_run(writer)
    port = free_port()
    waits: list[float] = []
    assert len(runner(writer, port, waits).run_once()) == 4
    # One alert was tried as often as planned; the others wait, since the receiver is down.
    assert waits == list(BACKOFF_S)
    failures = writer.store.query(
        "SELECT attempts, error FROM alert_deliveries FINAL WHERE experiment = {e:String}",
        {"e": writer.experiment},
    ).rows
    assert [attempts for attempts, _ in failures] == [3]
    assert "refused" in failures[0][1]
    assert "t0ken" not in failures[0][1]
    with receiver(port=port) as server:
        for _ in range(3):
            assert runner(writer, port).run_once() == []
    assert len(server.received) == 4
    stored = {row["alert_id"]: row for row in alerts(writer)}
    for got in server.received:
        expected = hmac.new(SECRET.encode(), got.body, hashlib.sha256).hexdigest()
        assert got.headers["X-Gnomon-Signature"] == f"sha256={expected}"
        assert got.headers["Idempotency-Key"] == f"{got.alert['alert_id']}:firing"
        assert got.headers["Content-Type"] == "application/json"
        assert got.alert["summary"] == stored[got.alert["alert_id"]]["summary"]
    assert {got.alert["alert_id"] for got in server.received} == set(stored)


def test_fired_and_resolved_while_it_was_down_arrive_in_order(writer: Writer) -> None:
    end = faulty_run(writer, quiet=0)
    port = free_port()
    runner(writer, port).run_once()
    for offset in range(end, end + 260):
        writer.pair(offset, worse="reference")
    writer.settled(end, end + 260)
    runner(writer, port).run_once()
    with receiver(port=port) as server:
        runner(writer, port).run_once()
    states: dict[str, list[str]] = {}
    for got in server.received:
        states.setdefault(got.alert["alert_id"], []).append(got.alert["state"])
    assert list(states.values()) == [["firing", "resolved"]] * 4


def test_refused_alert_does_not_hold_back_the_others(writer: Writer) -> None:
    faulty_run(writer)
    with receiver(400) as server:
        runner(writer, server.server_port).run_once()
        assert len(server.received) == 4
        runner(writer, server.server_port).run_once()
        runner(writer, server.server_port).run_once()
    assert len(server.received) == 5
    assert server.received[0].body == server.received[4].body


def test_overload_is_retried_within_the_run(writer: Writer) -> None:
    faulty_run(writer)
    waits: list[float] = []
    with receiver(503, 429) as server:
        runner(writer, server.server_port, waits).run_once()
    assert waits == list(BACKOFF_S)
    assert len(server.received) == 6


def test_redirect_is_an_error_and_no_secret_is_needed(writer: Writer) -> None:
    faulty_run(writer)
    waits: list[float] = []
    with receiver(302) as server:
        webhook = Webhook(f"http://127.0.0.1:{server.server_port}/hook", sleep=waits.append)
        AlertRunner(writer.store, DECLARED, writer.experiment, ["q4"], webhook=webhook).run_once()
    assert waits == []
    assert len(server.received) == 4
    assert "X-Gnomon-Signature" not in server.received[0].headers
    rows = writer.store.query(
        "SELECT error FROM alert_deliveries FINAL WHERE experiment = {e:String} AND NOT is_delivered",
        {"e": writer.experiment},
    ).rows
    assert len(rows) == 1
    assert rows[0][0].endswith("not received: status 302")


def test_settings_name_the_receiver(writer: Writer) -> None:
    faulty_run(writer)
    with receiver() as server:
        settings: AlertSettings = msgspec.structs.replace(
            DECLARED, webhook_url=f"http://127.0.0.1:{server.server_port}/", webhook_secret=SECRET
        )
        AlertRunner(writer.store, settings, writer.experiment, ["q4"]).run_once()
    assert len(server.received) == 4
    assert all("X-Gnomon-Signature" in got.headers for got in server.received)
