"""What kafka-python leaves open."""

from __future__ import annotations

from kafka import KafkaConsumer, TopicPartition

from compare.demo.broker import EmbeddedBroker
from ingest.kafka_client import Clients


def test_a_connection_with_bytes_that_wait_to_be_sent_is_closed_too(
    broker: EmbeddedBroker, topic: str
) -> None:
    clients = Clients()
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, kafka_client=clients)
    place = TopicPartition(topic, 0)
    assert consumer.beginning_offsets([place]) == {place: 0}
    (connection,) = consumer._client._manager._conns.values()
    transport = connection.transport
    socket = transport._sock
    # As between a request that is made and its first byte on the way.
    transport._write_buffer.append(b"more")
    consumer.close(autocommit=False)
    assert socket.fileno() == -1
