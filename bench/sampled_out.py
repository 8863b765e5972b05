"""What a record costs that is not replayed. Run: python -m bench.sampled_out [--records N]

A real broker, `gnomon run` with `sample_fraction = 0` and the embedded engine. Each record (a chat request of
3 KB in the native envelope) is consumed, decoded, left out, and its outcome stored and committed. Printed:
processor time of the service a record, engine included, start-up taken off.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from kafka import KafkaProducer

from bench.processor import processor_of
from compare.demo.broker import EmbeddedBroker, create_topic

_SETTINGS = """
[experiment]
name = "sampled-out"
reference = "full"
candidates = ["small"]
models = {{ "*" = {{ full = "m", small = "m" }} }}
sample_fraction = 0.0
[endpoints.full]
url = "http://127.0.0.1:9"
[endpoints.small]
url = "http://127.0.0.1:9"
[kafka]
bootstrap_servers = ["{bootstrap}"]
session_timeout_ms = 6000
heartbeat_interval_ms = 500
max_poll_interval_ms = 10000
[store]
url = "chdb://{folder}"
[compare]
embedding_model = ""
[alerts]
enabled = false
[operations]
port = {port}
log_level = "warning"
"""
_SKIPPED = re.compile(r'^gnomon_records_skipped_total\{[^}]*reason="sampled_out"[^}]*\} (\S+)$', re.MULTILINE)


def send(bootstrap: str, records: int, first: int) -> None:
    """Send so many requests to the mirror topic."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20)
    words = "the quick brown fox jumps over the lazy dog and runs away " * 50
    for number in range(first, first + records):
        envelope = {
            "schema": "gnomon.mirror/1",
            "request_id": f"r-{number}",
            "tenant": "acme",
            "route": "chat",
            "request": {"model": "m", "messages": [{"role": "user", "content": f"{number} {words}"}]},
        }
        producer.send("gnomon.mirror", json.dumps(envelope).encode())
    producer.close()


def left_out(port: int) -> float:
    """How many records have a stored outcome; -1 while the service does not serve its metrics yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError:
        return -1
    return sum(map(float, _SKIPPED.findall(text)))


def wait_for(service: subprocess.Popen[bytes], port: int, wanted: int) -> None:
    """Wait until so many records have their outcome."""
    while left_out(port) < wanted:
        if service.poll() is not None:
            raise SystemExit(f"the service ended with exit code {service.returncode}")
        time.sleep(0.2)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=30_000)
    records = parser.parse_args().records
    with tempfile.TemporaryDirectory() as place, EmbeddedBroker() as broker:
        folder = Path(place) / "store"
        for topic in ("gnomon.mirror", "gnomon.dead"):
            create_topic(broker.bootstrap, topic, partitions=1)
        file = Path(place) / "gnomon.toml"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        text = _SETTINGS.format(bootstrap=broker.bootstrap, folder=folder, port=port)
        file.write_text(text, encoding="utf-8")
        send(broker.bootstrap, 100, 0)
        with subprocess.Popen(
            [sys.executable, "-m", "compare.cli.main", "run", "--config", str(file)]
        ) as service:
            try:
                wait_for(service, port, 100)
                before = processor_of(service.pid)
                send(broker.bootstrap, records, 100)
                wait_for(service, port, 100 + records)
                spent = processor_of(service.pid) - before
            finally:
                service.terminate()
                service.wait(60)
    print(
        f"{records:,} records left out: {spent / records * 1000:.3f} ms of processor time each, "
        f"{records / spent:,.0f} records a processor second"
    )


if __name__ == "__main__":
    main()
