"""The command `gnomon replay` as a process: killed, stopped, beside a service; redacted requests."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
from aiohttp import web

from compare.run import run_service
from compare.store.client import open_store
from ingest.load_settings import load_settings
from ingest.settings import RedactionRule, RedactionSettings
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.conftest import Bench, envelope
from tests.integration.test_outages import ROOT, config_of
from tests.integration.test_reprocess import last_hour, renamed, replayed

RECORDS = 60
IN_FLIGHT = 2


class SlowStub(StubEndpoint):
    """A tenth of a second for each answer."""

    async def _answer(self, request: web.Request) -> web.Response:
        await asyncio.sleep(0.1)
        return await super()._answer(request)


def start(config: Path, *arguments: str) -> subprocess.Popen[str]:
    command = "from compare.cli.main import main; main()"
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GNOMON_")} | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", command, "replay", "--config", str(config), "--from", "1h",
         "--in-flight", str(IN_FLIGHT), *arguments],
        cwd=config.parent, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for_calls(stub: StubEndpoint, count: int, child: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while len(stub.calls) < count:
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_killed_stopped_and_begun_again_beside_a_service_it_does_each_request_once(
    bench: Bench, tmp_path: Path, stubs: tuple[StubEndpoint, StubEndpoint]
) -> None:
    bench.produce([envelope(f"r{n}", f"say {n}") for n in range(RECORDS)])
    config = config_of(bench, tmp_path / "gnomon.toml")
    run_service(load_settings(config, {}), stop_when=lambda c: c.outcomes >= RECORDS)
    asked = len(stubs[0].calls)
    with SlowStub() as slow:
        text = config.read_text().replace('name = "e"', 'name = "k"')
        config.write_text(text.replace(stubs[1].url, slow.url))
        dry = start(config, "--dry-run")
        out, err = dry.communicate(timeout=120)
        assert (dry.returncode, out, slow.calls) == (0, "", []), err
        assert (
            f"{RECORDS} requests of experiment e found; {RECORDS} to run against cand as experiment k" in err
        )

        killed = start(config, "--yes")
        wait_for_calls(slow, 15, killed)
        killed.kill()
        assert killed.wait(60) == -signal.SIGKILL
        killed.communicate()
        at_kill = len(slow.calls)

        stopped = start(config, "--yes")
        wait_for_calls(slow, at_kill + 10, stopped)
        stopped.send_signal(signal.SIGTERM)
        out, err = stopped.communicate(timeout=120)
        assert stopped.returncode == 1, err
        assert "stopped before the end: the same command goes on here" in out
        at_stop = len(slow.calls)

        # While another process owns the store, it is gone through.
        with open_store(bench.settings.store, role="owner"):
            rest = start(config, "--yes", "--source", "e")
            out, err = rest.communicate(timeout=240)
            assert rest.returncode == 0, err
        assert "reference: " in out and "(100.0 %)" in out
        assert at_kill < at_stop < len(slow.calls)
        # A kill wastes what was in flight and what waited to be stored, here for 0.2 s; the stop wastes none.
        assert RECORDS <= len(slow.calls) <= RECORDS + IN_FLIGHT + 20
        assert set(slow.calls) == {f"say {n}" for n in range(RECORDS)}
    assert len(stubs[0].calls) == asked
    # Raw, without FINAL: each key is there once.
    for table in ("pairs", "findings"):
        assert bench.rows(f"SELECT count(), uniqExact(offset) FROM {table} WHERE experiment = 'k'") == [
            (RECORDS, RECORDS)
        ]
    assert bench.rows(
        "SELECT role, count() FROM observations WHERE experiment = 'k' GROUP BY 1 ORDER BY 1"
    ) == [
        ("candidate", RECORDS),
        ("reference", RECORDS),
    ]
    assert bench.rows(
        "SELECT consumer_group, consumed, compared, unaccounted FROM accounting_v1 WHERE experiment = 'k'"
    ) == [("replay/k", RECORDS, RECORDS, 0)]
    assert bench.rows(
        "SELECT experiment, sum(pairs) FROM rollup_daily_v1 WHERE dimension = 'all' GROUP BY 1 ORDER BY 1"
    ) == [
        ("e", RECORDS),
        ("k", RECORDS),
    ]


def test_a_redacted_request_is_run_as_kafka_has_it_or_when_asked_for(
    bench: Bench, stubs: tuple[StubEndpoint, StubEndpoint]
) -> None:
    rules = RedactionSettings(
        rules=[RedactionRule(action="mask", pattern="sk-[a-z0-9]{8}")], key="a key of sixteen or more"
    )
    settings = msgspec.structs.replace(bench.settings, redaction=rules)
    bench.produce([envelope("open", "say hello"), envelope("secret", "my key is sk-abcd1234")])
    run_service(settings, stop_when=lambda c: c.outcomes >= 2)
    # The answer to a prompt that is not stored is not kept either.
    assert bench.rows("SELECT `offset` FROM reference_answers") == [(0,)]
    asked = len(stubs[0].calls)
    report = replayed(renamed(settings, "whole"), last_hour(), source="e")
    assert (report.compared, report.came_from) == (2, {"kafka": 2})
    assert report.answers == {"reused": 1, "not kept, or expired, or redacted": 1}
    assert stubs[0].calls[asked:] == ["my key is sk-abcd1234"]
    report = replayed(renamed(settings, "refused"), last_hour(), source="e", asks_kafka=False)
    assert (report.compared, report.came_from) == (1, {"store": 1, "redacted": 1})
    report = replayed(
        renamed(settings, "allowed"), last_hour(), source="e", asks_kafka=False, allow_redacted=True
    )
    assert (report.compared, report.came_from) == (2, {"store": 2})
    assert stubs[1].calls[-1] in ("my key is [redacted]", "say hello")
    assert "my key is [redacted]" in stubs[1].calls
    assert bench.rows("SELECT count() FROM requests_v1 WHERE is_redacted") == [(1,)]
