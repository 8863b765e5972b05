"""The command: a real program that reads JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from compare.alerts.notice import Delivery
from compare.alerts.sinks.command import Command
from ingest.settings_notify import CommandSink
from tests.compare.alerts import made


def run(argv: list[str], **settings: object) -> Delivery:
    notice = made.notice()
    sink = CommandSink(argv=argv, **settings)  # type: ignore[arg-type]
    return Command("command:page", sink).send(notice, notice.created_at)


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def test_gets_json_and_no_secret_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_STORE_PASSWORD", "hush")
    file = tmp_path / "got; touch pwned"
    code = (
        "import json, os, sys; given = json.load(sys.stdin);"
        "json.dump([given, dict(os.environ)], open(sys.argv[1], 'w'))"
    )
    delivery = run(python(code, str(file)), environment={"TEAM": "x"})
    assert delivery == Delivery(1)
    given, environment = json.loads(file.read_text())
    assert given["key"] == f"{'g' * 32}:1"
    assert given["notice"]["state"] == "firing"
    assert environment["TEAM"] == "x"
    assert "PATH" in environment
    assert not [name for name in environment if name.startswith("GNOMON")]
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_failure_shows_its_last_words_made_visible() -> None:
    delivery = run(python("import sys; sys.stderr.write('a\\nno route\\x1b[2J\\n'); sys.exit(3)"))
    assert delivery.error == f"{sys.executable}: ended with 3: no route\\x1b[2J"
    assert not delivery.is_down


def test_it_may_ask_to_be_called_later() -> None:
    assert run(python("raise SystemExit(75)")).is_down


def test_a_program_that_is_not_there() -> None:
    delivery = run(["/no/such/program"])
    assert delivery.error == "/no/such/program: cannot be started: No such file or directory"


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    file = tmp_path / "child"
    code = (
        "import subprocess, sys, time; child = subprocess.Popen(['sleep', '60']);"
        "open(sys.argv[1], 'w').write(str(child.pid)); time.sleep(60)"
    )
    delivery = run(python(code, str(file)), timeout_s=2.0)
    assert "not done after 2 s" in delivery.error
    child = int(file.read_text())
    deadline = time.monotonic() + 10
    while _is_alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    """Whether it runs; one that nobody has waited for yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z" and os.path.exists(f"/proc/{pid}")
