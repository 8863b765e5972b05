"""Faults at the source's start: each is one line."""

from __future__ import annotations

import socket

import msgspec
import pytest

from compare.demo.broker import EmbeddedBroker
from compare.ledger import Ledger
from ingest.errors import FatalError
from ingest.kafka_source import KafkaSource
from ingest.settings import DeliverySettings
from tests.fixtures.sasl_broker import RefusingBroker
from tests.ingest.kafka_rig import kafka_settings


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def test_an_unreachable_broker_is_one_line(unused_port: int) -> None:
    settings = kafka_settings(f"127.0.0.1:{unused_port}", "t")
    source = KafkaSource(settings, DeliverySettings(), Ledger("g"), startup_timeout_s=1.0)
    with pytest.raises(FatalError, match=f"no Kafka broker answers at 127.0.0.1:{unused_port} .*refused"):
        await source.start()
    await source.close()


async def test_a_silent_port_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings = kafka_settings(f"127.0.0.1:{port}", "t")
        source = KafkaSource(settings, DeliverySettings(), Ledger("g"), startup_timeout_s=1.5)
        with pytest.raises(FatalError, match=rf"no Kafka broker answers at 127.0.0.1:{port} within"):
            await source.start()
        await source.close()


async def test_a_wrong_password_is_one_line() -> None:
    with RefusingBroker() as refusing:
        settings = msgspec.structs.replace(
            kafka_settings(refusing.address, "t"),
            security_protocol="SASL_PLAINTEXT",
            username="gnomon",
            password="wrong",
        )
        source = KafkaSource(settings, DeliverySettings(), Ledger("g"), startup_timeout_s=20.0)
        with pytest.raises(FatalError) as caught:
            await source.start()
        await source.close()
    assert str(caught.value) == (
        f"Kafka at {refusing.address} refuses user 'gnomon' (PLAIN): "
        "check kafka.username and GNOMON_KAFKA_PASSWORD"
    )


async def test_a_missing_topic_is_one_line(broker: EmbeddedBroker) -> None:
    settings = kafka_settings(broker.bootstrap, "no-such-topic")
    source = KafkaSource(settings, DeliverySettings(), Ledger("g"), startup_timeout_s=1.0)
    with pytest.raises(FatalError, match="topic 'no-such-topic' does not exist"):
        await source.start()
    await source.close()
