"""What the service does when it shares its group, and when its own process has nowhere to write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compare.demo.broker import EmbeddedBroker
from compare.store.client import open_store
from tests.fixtures.stores import MigratedAt
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.background import Service, until
from tests.integration.conftest import Bench, envelope
from tests.integration.test_outages import ROOT, config_of

RECORDS, ALL = 200, 400
ACCOUNTING = "SELECT sum(consumed), sum(compared), sum(unaccounted) FROM accounting_v1"


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_a_second_service_on_the_group_takes_over_work_under_way_and_nothing_is_done_twice(
    broker: EmbeddedBroker,
    stubs: tuple[StubEndpoint, StubEndpoint],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    migrated_at: MigratedAt,
) -> None:
    caplog.set_level("INFO", "ingest.kafka_source")
    bench = Bench(broker.bootstrap, tmp_path / "store", stubs[0].url, stubs[1].url)
    migrated_at(bench.folder)
    bench.make_topics(partitions=2)
    bench.produce([envelope(f"r{n}", f"question {n}") for n in range(RECORDS)], partitions=2)

    def begun() -> int:
        return caplog.text.count(f"of {bench.topic} begins at offset")

    with open_store(bench.settings.store, role="any") as store:
        first = Service(bench, outcomes=ALL + 1)
        until(lambda: first.stored >= 20)
        # From here on requests are under way and do not end, until the partitions were given anew.
        stubs[1].is_answering.clear()
        second = Service(bench, outcomes=ALL + 1)
        until(lambda: begun() >= 2 + 2, 180)
        # Whichever partition each has now, there is something to do in it.
        more = [envelope(f"r{n}", f"question {n}") for n in range(RECORDS, ALL)]
        bench.produce(more, partitions=2)
        stubs[1].is_answering.set()
        until(lambda: store.query(ACCOUNTING).rows == [(ALL, ALL, 0)], 180)
        first.end()
        second.end()
        reports = [first.report(), second.report()]
        # Each did its share; what the first had begun and lost was begun again, and stored once.
        assert min(report.compared for report in reports) > 0
        assert sum(report.compared for report in reports) == ALL
        rows = store.query("SELECT count(), uniqExact(partition, offset) FROM pairs").rows
        assert rows == [(ALL, ALL)]
        assert store.query("SELECT sum(duplicates) FROM duplicated_rows_v1").rows == [(0,)]
        assert store.query(ACCOUNTING).rows == [(ALL, ALL, 0)]
    assert [bench.committed(0), bench.committed(1)] == [RECORDS, RECORDS]


def test_a_full_disk_under_its_log_costs_log_lines_only(
    bench: Bench, stubs: tuple[StubEndpoint, StubEndpoint], tmp_path: Path
) -> None:
    # The broken one first: the last may not be taken up before the stop.
    bench.produce([b"\xff broken", *(envelope(f"r{n}", f"question {n}") for n in range(60))])
    config = config_of(bench, tmp_path / "gnomon.toml")
    command = "from compare.cli.main import main; main()"
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GNOMON_")}
    with Path("/dev/full").open("w") as full:
        process = subprocess.Popen(
            [sys.executable, "-c", command, "run", "--config", str(config)],
            cwd=ROOT, env=environ, stdout=full, stderr=full,
        )  # fmt: skip
        try:
            until(lambda: len(stubs[1].calls) >= 60 or process.poll() is not None)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    assert bench.rows("SELECT consumed, compared, dead_lettered, unaccounted FROM accounting_v1") == [
        (61, 60, 1, 0)
    ]
    assert bench.committed() == 61


def test_a_backlog_of_large_records_before_slow_endpoints_takes_no_more_memory_than_its_bounds(
    bench: Bench, stubs: tuple[StubEndpoint, StubEndpoint], tmp_path: Path
) -> None:
    """200 MB wait, 8 MiB may be queued and 8 MiB under way: measured, 55 MB more at 60 MB and at 240 MB."""
    config = config_of(bench, tmp_path / "gnomon.toml")
    bounds = "[delivery]\nmax_queued_bytes = 8388608\nmax_under_way_bytes = 8388608"
    config.write_text(config.read_text().replace("[delivery]", bounds))
    for stub in stubs:
        stub.is_answering.clear()
    command = "from compare.cli.main import main; main()"
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GNOMON_")}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", command, "run", "--config", str(config)],
            cwd=ROOT, env=environ, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        until(lambda: "begins at offset" in (tmp_path / "log").read_text())
        before = memory_mb(process.pid, "VmRSS")
        bench.produce([envelope(f"r{n}", "7" * 1_000_000) for n in range(200)])
        until(lambda: len(stubs[0].calls) >= 8)
        # Time for twenty polls: whatever would go on growing, grows.
        time.sleep(2.0)
        assert memory_mb(process.pid, "VmHWM") - before < 120
    finally:
        process.kill()
        process.wait()


def memory_mb(pid: int, what: str) -> float:
    """A figure of the process's own memory: `VmRSS` now, `VmHWM` at its highest."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition(f"{what}:")[2].split()[0]) / 1000


def test_a_command_whose_output_has_no_room_is_one_line() -> None:
    command = "from compare.cli.main import main; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", command, "config", "--example"],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "gnomon: the output cannot be written: No space left on device\n"
