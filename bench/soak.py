"""Memory of the service over a long time at full speed. Run: python -m bench.soak [--minutes 30]

The real service (`gnomon run`, embedded store, embeddings on) reads from the real broker, always with a
backlog; its two endpoints are stubs in a process of their own that answer at once with 200 tokens and 20
alternatives. Every five seconds the memory of the service and of its comparison process is read. It prints
a line a minute, then speed, peak and slope (least squares after the warm-up, with its 95 % interval), and
says OK or MISSED: a peak under 1.5 GiB, and a slope that adds less than 5 % of the median in that time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from kafka import KafkaProducer
from prometheus_client.parser import text_string_to_metric_families
from scipy.stats import linregress, t

from bench.chaos_engine import start_engine
from bench.compare import wires_of
from compare.demo.broker import EmbeddedBroker, create_topic
from compare.demo.child import ChildProcess

LIMIT_MIB = 1536.0
LARGEST_GROWTH = 0.05
SAMPLE_S = 5.0
BACKLOG = 1_000
PARTITIONS = 3
WIRES = 64
SERVE = "import sys; from bench.soak import serve; serve(sys.argv[1])"
RUN = "from compare.cli.main import main; main()"

CONFIG = """
[experiment]
name = "soak"
reference = "ref"
candidates = ["cand"]
models = {{"*" = {{ref = "full", cand = "q4"}}}}
forced_fraction = 0.0
[endpoints.ref]
url = "http://127.0.0.1:{ref}"
[endpoints.cand]
url = "http://127.0.0.1:{cand}"
[kafka]
bootstrap_servers = ["{bootstrap}"]
topic = "soak"
dead_letter_topic = "soak-dead"
session_timeout_ms = 6000
heartbeat_interval_ms = 500
max_poll_interval_ms = 10000
[store]
url = "{store}"
[operations]
port = {port}
"""


def serve(ports: str) -> None:
    """Both endpoints, until SIGTERM."""
    asyncio.run(_serve(Path(ports)))


async def _serve(ports: Path) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    wires = wires_of(WIRES)
    servers, told = [], {}
    for side, name in enumerate(("ref", "cand")):
        bodies = [wire[0][side] for wire in wires]
        server = await asyncio.start_server(_answering(bodies), "127.0.0.1", 0)
        servers.append(server)
        told[name] = server.sockets[0].getsockname()[1]
    part = ports.with_suffix(".part")
    part.write_text(json.dumps(told))
    part.rename(ports)
    await stop.wait()


def _answering(bodies: list[bytes]) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
    """A server that answers every POST with the next body, and every GET with 404."""
    number = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal number
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                if b"content-length:" in head:
                    await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
                if not head.startswith(b"post /v1/chat"):
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    continue
                body = bodies[number % len(bodies)]
                number += 1
                lines = ("HTTP/1.1 200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}")
                writer.write("\r\n".join((*lines, "", "")).encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    return answer


class Sample(msgspec.Struct, frozen=True):
    """Resident memory at one moment, MiB; seconds since the first record was stored."""

    at_s: float
    service_mib: float
    comparison_mib: float

    @property
    def total_mib(self) -> float:
        """Both processes, shared pages counted twice."""
        return self.service_mib + self.comparison_mib


def resident_mib(pid: int) -> float:
    """VmRSS of a process; 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return float(text.split("VmRSS:")[1].split()[0]) / 1024 if "VmRSS:" in text else 0.0


def children_of(pid: int) -> list[int]:
    """Processes whose parent is `pid`."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(status.parent.name))
    return found


def metric(port: int, name: str) -> float:
    """A metric without labels, as the service tells it; 0 before it answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
            text = answer.read().decode()
    except OSError:
        return 0.0
    families = text_string_to_metric_families(text)
    return next((s.value for f in families for s in f.samples if s.name == name and not s.labels), 0.0)


def free_port() -> int:
    """A port that was free a moment ago."""
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Feeder:
    """Keeps a backlog of records in the topic."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = KafkaProducer(bootstrap_servers=bootstrap)
        self._requests = [json.dumps({"model": "m", **wire[1]}) for wire in wires_of(WIRES)]
        self.produced = 0

    def fill(self, consumed: float) -> None:
        """Send as many records as the backlog lacks."""
        for _ in range(max(0, int(consumed) + BACKLOG - self.produced)):
            request = self._requests[self.produced % WIRES]
            value = f'{{"schema": "gnomon.mirror/1", "request_id": "s{self.produced}", "request": {request}}}'
            self._producer.send("soak", value.encode(), partition=self.produced % PARTITIONS)
            self.produced += 1
        self._producer.flush()

    def close(self) -> None:
        """Close the connection."""
        self._producer.close()


def soak(minutes: float, *, is_engine_apart: bool) -> tuple[list[Sample], float]:
    """Run it; the samples, and records stored a second."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gnomon-soak-")))
        broker = stack.enter_context(EmbeddedBroker())
        create_topic(broker.bootstrap, "soak", PARTITIONS)
        create_topic(broker.bootstrap, "soak-dead", 1)
        ports = folder / "ports.json"
        endpoints = ChildProcess([sys.executable, "-c", SERVE, str(ports)], folder / "endpoints.log")
        stack.callback(endpoints.stop)
        while not ports.exists():
            if endpoints.exit_code is not None:
                raise RuntimeError(endpoints.output_tail())
            time.sleep(0.1)
        port, store = free_port(), f"chdb://{folder}/store"
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GNOMON_")}
        engine: ChildProcess | None = None
        if is_engine_apart:
            engine, owner = start_engine(folder / "store", folder / "engine.log")
            stack.callback(engine.stop)
            store, environ["GNOMON_STORE_PASSWORD"] = owner.url, owner.writer_token
        config = folder / "gnomon.toml"
        config.write_text(
            CONFIG.format(bootstrap=broker.bootstrap, store=store, port=port, **json.loads(ports.read_text()))
        )
        feeder = Feeder(broker.bootstrap)
        stack.callback(feeder.close)
        feeder.fill(0)
        program = [sys.executable, "-c", RUN, "run", "--config", str(config)]
        service = ChildProcess(program, folder / "service.log", environ)
        stack.callback(service.stop)
        samples: list[Sample] = []
        began: float | None = None
        stored = first = 0.0
        while began is None or time.monotonic() - began < minutes * 60:
            if service.exit_code is not None:
                raise RuntimeError(f"the service ended: {service.output_tail()}")
            time.sleep(SAMPLE_S)
            stored = metric(port, "gnomon_records_compared_total")
            feeder.fill(metric(port, "gnomon_records_consumed_total"))
            if began is None and stored > 0:
                began, first = time.monotonic(), stored
            if began is not None:
                mine, others = resident_mib(service.pid), map(resident_mib, children_of(service.pid))
                samples.append(Sample(time.monotonic() - began, mine, sum(others)))
                if len(samples) % round(60 / SAMPLE_S) == 0:
                    one = samples[-1]
                    apart = "" if engine is None else f" (engine apart: {resident_mib(engine.pid):.0f})"
                    memory = f"{one.service_mib:6.0f} + {one.comparison_mib:6.0f} MiB{apart}"
                    print(f"{one.at_s / 60:5.1f} min: {memory}, {stored:8.0f} records compared", flush=True)
        assert began is not None
        return samples, (stored - first) / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--warm-up", type=float, default=5.0, help="minutes that the slope leaves out")
    parser.add_argument(
        "--engine-apart", action="store_true", help="tell what is Python's and what the engine's"
    )
    given = parser.parse_args()
    print(f"{given.minutes:g} minutes from the first stored record on", flush=True)
    samples, rate = soak(given.minutes, is_engine_apart=given.engine_apart)
    kept = [one for one in samples if one.at_s >= given.warm_up * 60]
    if len(kept) < 10:
        raise SystemExit("too short: give more --minutes than --warm-up")
    minutes = np.array([one.at_s for one in kept]) / 60
    memory = np.array([one.total_mib for one in kept])
    fitted = linregress(minutes, memory)
    margin = float(t.ppf(0.975, len(kept) - 2)) * fitted.stderr
    peak = max(one.total_mib for one in samples)
    growth = fitted.slope * (minutes[-1] - minutes[0]) / np.median(memory)
    print(f"speed   {rate:.1f} records a second compared and stored")
    print(f"peak    {peak:.0f} MiB resident, both processes (limit {LIMIT_MIB:.0f})")
    print(f"slope   {fitted.slope:+.2f} MiB a minute, 95 % interval {margin:.2f} either way")
    span = minutes[-1] - minutes[0]
    print(f"growth  {growth:+.1%} of the median {np.median(memory):.0f} MiB in {span:.0f} minutes")
    is_ok = peak < LIMIT_MIB and growth < LARGEST_GROWTH
    print("OK" if is_ok else "MISSED")
    sys.exit(not is_ok)


if __name__ == "__main__":
    main()
