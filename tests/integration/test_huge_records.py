"""Records of 1 to 20 MiB through the whole chain; a process of its own, so that its memory can be told."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
from kafka import KafkaProducer

from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.background import until
from tests.integration.conftest import Bench, envelope
from tests.integration.test_outages import ROOT, config_of

MIB = 1024 * 1024
SIZES = [1 * MIB, 15 * MIB, 1000, 16 * MIB, 16 * MIB + 1, 19 * MIB, 1000]
STORED = "SELECT sum(records) FROM delivered_ranges_v1"
COMMAND = "from compare.cli.main import main; main()"
PEAK_MIB = 1536
"""The design's limit for the service, whatever the backlog."""


def record(number: int, size: int) -> bytes:
    return envelope(f"r{number}", "7" * (size - len(envelope(f"r{number}", ""))))


def peaks_mib(pid: int) -> list[float]:
    """The highest resident memory so far of a process and of each of its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    statuses = [Path(f"/proc/{each}/status").read_text() for each in (pid, *children)]
    return [int(text.partition("VmHWM:")[2].split()[0]) / 1024 for text in statuses]


def test_records_up_to_20_mib_pass_and_over_16_mib_only_their_size_and_hash_are_kept(
    bench: Bench, stubs: tuple[StubEndpoint, StubEndpoint], tmp_path: Path
) -> None:
    values = [record(number, size) for number, size in enumerate(SIZES)]
    assert [len(value) for value in values] == SIZES
    producer = KafkaProducer(bootstrap_servers=bench.bootstrap, max_request_size=32 * MIB)
    for value in values:
        producer.send(bench.topic, value, partition=0).get(60)
    producer.close()
    config = config_of(bench, tmp_path / "gnomon.toml")
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GNOMON_")}
    with (tmp_path / "log").open("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "run", "--config", str(config)],
            cwd=ROOT, env=environ, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            # Not earlier: the service shall be the one that opens the store's folder.
            until(lambda: len(stubs[1].calls) == 5 or process.poll() is not None, 240)
            while process.poll() is None and bench.rows(STORED) != [(len(SIZES),)]:
                time.sleep(0.5)
            peaks = peaks_mib(process.pid)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, (tmp_path / "log").read_text()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    print(f"peak of the service and of its children, MiB: {peaks}")
    assert sum(peaks) < PEAK_MIB
    for stub in stubs:
        assert sorted(map(len, stub.calls)) == sorted(
            size - len(envelope("r0", "")) for size in SIZES if size <= 16 * MIB
        )
    whole = [(at, size) for at, size in enumerate(SIZES) if size <= 16 * MIB]
    stored = bench.rows(
        "SELECT offset, length(body) FROM pairs_v1 JOIN requests_v1 USING (topic_id, partition, offset) "
        "ORDER BY offset"
    )
    frame = len(envelope("r0", "")) - len(
        msgspec.json.encode(msgspec.json.decode(envelope("r0", ""))["request"])
    )
    assert stored == [(at, size - frame) for at, size in whole]
    assert bench.rows("SELECT offset, kind, reason, detail FROM outcomes_v1 ORDER BY offset") == [
        (at, "skipped", "oversize", f"{SIZES[at]} bytes, sha256 {hashlib.sha256(values[at]).hexdigest()}")
        for at in (4, 5)
    ]
    assert bench.committed() == len(SIZES)
    assert bench.rows("SELECT consumed, compared, skipped, unaccounted FROM accounting_v1") == [(7, 5, 2, 0)]
