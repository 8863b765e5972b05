"""A call is told by the sinks of the settings: a real webhook receiver and a real program."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec

from compare.alerts.sinks.alertmanager import Alertmanager
from compare.alerts.sinks.text import render
from compare.rollback.condition import Condition, Conditions
from compare.rollback.decisions import Decision, decided
from compare.rollback.hysteresis import Standing
from compare.rollback.sinks import SinkTeller, notice_of, tellers_of
from compare.rollback.tell import key_of
from ingest.settings import EndpointSettings, ExperimentSettings, Settings
from ingest.settings_notify import AlertmanagerSink, NotifySettings, SinkText, WebhookSink
from ingest.settings_rollback import RollbackSettings
from tests.fixtures.stores import MigratedAt

AT = datetime(2026, 1, 5, 3, 12, 10, tzinfo=UTC)
C = Conditions(Condition("off", "a"), Condition("off", "b"), Condition("firing", "restarts: 2 > 1"))


def decision(before: Decision | None = None, *, is_called: bool = True) -> Decision:
    at = AT if before is None else AT + timedelta(minutes=30)
    quiet = msgspec.structs.replace(C, c=Condition("quiet", "all rules quiet"))
    found = decided(
        before, C if is_called else quiet, Standing(is_called), experiment="e", candidate="q4", at=at,
        settings_hash="s", served_hash="v",
    )  # fmt: skip
    assert found is not None
    return found


def settings(notify: NotifySettings, sinks: list[str] | None = None) -> Settings:
    return Settings(
        experiment=ExperimentSettings("e", "fp16", ["q4"], {}),
        endpoints={name: EndpointSettings("http://127.0.0.1:9") for name in ("fp16", "q4")},
        notify=notify,
        rollback=RollbackSettings(sinks=sinks),
    )


class Receiver:
    """Keeps what is posted to it: headers and body. `before` is called before it answers."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.got: list[tuple[dict[str, str], Any]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((dict(self.headers), json.loads(body)))
                before()
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def test_a_webhook_gets_the_call_and_its_end() -> None:
    with Receiver() as receiver:
        notify = NotifySettings(webhook={"pager": WebhookSink(url=receiver.url)})
        (teller,) = tellers_of(settings(notify))
        called = decision()
        cleared = decision(called, is_called=False)
        assert not teller.tell(called).error and not teller.tell(cleared).error
    assert teller.name == "webhook:pager"
    (first, told), (second, ended) = receiver.got
    assert (first["Idempotency-Key"], second["Idempotency-Key"]) == (key_of(called), key_of(cleared))
    assert told["title"] == "FIRING critical: e: q4: rollback"
    assert ended["title"] == "RESOLVED: e: q4: rollback"
    assert "rollback of q4 is called for: (A and B) or C. C firing: restarts: 2 > 1" in told["body"]
    assert f"All of it: gnomon rollback explain {called.decision_id}" in told["body"]
    assert "no longer called for" in ended["body"]
    assert told["notice"]["category"] == "rollback"
    assert (ended["notice"]["state"], ended["notice"]["resolved_at"]) == ("resolved", "2026-01-05T03:42:10Z")


def test_a_program_gets_it_once_on_its_standard_input(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    code = f"import sys; open({str(kept)!r}, 'a').write(sys.stdin.read() + '\\n')"
    raw = {"command": {"page": {"argv": [sys.executable, "-c", code]}, "other": {"argv": ["/nowhere"]}}}
    notify = msgspec.convert(raw, NotifySettings)
    (teller,) = tellers_of(settings(notify, ["page"]))
    assert not teller.tell(decision()).error
    (told,) = [json.loads(line) for line in kept.read_text().splitlines()]
    assert told["key"] == key_of(decision())
    assert [one.name for one in tellers_of(settings(notify))] == ["command:page", "command:other"]
    assert tellers_of(settings(notify, [])) == []


def test_a_call_that_holds_is_kept_alive_in_alertmanager() -> None:
    with Receiver() as receiver:
        notify = NotifySettings(
            alertmanager={"am": AlertmanagerSink(url=receiver.url, resend_s=0.001)},
            webhook={"pager": WebhookSink(url=receiver.url)},
        )
        pager, alertmanager = tellers_of(settings(notify))
        assert pager.keep_alive([decision()]) is None
        assert alertmanager.keep_alive([decision()]) is not None
    ((_, ((alert),)),) = receiver.got
    assert alert["labels"]["alertname"] == "GnomonRollback"
    assert alert["labels"]["group"] == decision().decision_id
    assert alert["startsAt"] == "2026-01-05T03:12:10Z"


def test_the_notice_is_the_same_whenever_it_is_made() -> None:
    assert notice_of(decision()) == notice_of(decision())
    assert render(notice_of(decision()), SinkText())[0] == "FIRING critical: e: q4: rollback"
    assert (
        SinkTeller(Alertmanager("a:b", AlertmanagerSink(url="http://127.0.0.1:9")), NotifySettings()).name
        == "a:b"
    )


def test_killed_while_the_sink_takes_it_the_same_key_comes_once_more_and_never_again(
    tmp_path: Path, migrated_at: MigratedAt
) -> None:
    migrated_at(tmp_path)
    name = f"e-{uuid.uuid4().hex[:8]}"
    children: list[subprocess.Popen[bytes]] = []

    def kill_the_first() -> None:
        if len(children) == 1:
            children[0].kill()
            children[0].wait()

    with Receiver(kill_the_first) as receiver:
        command = (
            sys.executable,
            "-m",
            "tests.compare.rollback.kill_child",
            str(tmp_path),
            name,
            receiver.url,
        )
        try:
            for _ in range(2):
                children.append(subprocess.Popen(command))
                children[-1].wait(150)
        finally:
            for child in children:
                child.kill()
                child.wait()
    assert [child.returncode for child in children] == [-9, 0]
    keys = [headers["Idempotency-Key"] for headers, _ in receiver.got]
    assert len(keys) == 2 and len(set(keys)) == 1
    assert receiver.got[0][1] == receiver.got[1][1]
