"""Dead letters on the real broker: nothing of the record is lost on its way."""

from __future__ import annotations

import uuid

import pytest
from kafka import KafkaConsumer, TopicPartition

from compare.demo.broker import EmbeddedBroker, create_topic
from ingest.dead_letters import DeadLetterTopic
from ingest.errors import RetryError
from ingest.records import RawRecord, SourcePosition
from ingest.settings import KafkaSettings

POSITION = SourcePosition("gnomon.mirror", "0190f0f2-0000-7000-8000-000000000001", 2, 41)


def record(value: bytes | None, key: bytes | None = None) -> RawRecord:
    return RawRecord(POSITION, 1_790_000_000_123, key, value, (("trace", b"\xff\x00"),))


def read_all(
    bootstrap: str, topic: str, count: int
) -> list[tuple[bytes | None, bytes | None, dict[str, bytes]]]:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", fetch_max_bytes=30_000_000
    )
    consumer.assign([TopicPartition(topic, 0)])
    found: list[tuple[bytes | None, bytes | None, dict[str, bytes]]] = []
    try:
        while len(found) < count:
            for records in consumer.poll(timeout_ms=10_000).values():
                found.extend((r.key, r.value, dict(r.headers)) for r in records)
    finally:
        consumer.close()
    return found


def test_bytes_headers_position_and_reason_arrive(broker: EmbeddedBroker, topic: str) -> None:
    settings = KafkaSettings(bootstrap_servers=[broker.bootstrap], dead_letter_topic=topic)
    letters = DeadLetterTopic(settings)
    try:
        letters.send(record(b"\xff{not json", b"key"), "invalid_json", "byte 0 é: " + "x" * 2000)
        letters.send(record(None), "empty", "no value")
        letters.send(record(b"y" * (18 * 1024 * 1024)), "missing_field", "no `request`")
    finally:
        letters.close()
    first, second, third = read_all(broker.bootstrap, topic, 3)
    assert first[:2] == (b"key", b"\xff{not json")
    headers = first[2]
    assert headers.pop("gnomon.message") == ("byte 0 é: " + "x" * 990).encode()
    assert headers == {
        "trace": b"\xff\x00",
        "gnomon.topic": b"gnomon.mirror",
        "gnomon.topic_id": b"0190f0f2-0000-7000-8000-000000000001",
        "gnomon.partition": b"2",
        "gnomon.offset": b"41",
        "gnomon.timestamp_ms": b"1790000000123",
        "gnomon.reason": b"invalid_json",
        "gnomon.schema_guess": b"text",
    }
    assert second[1] == b""
    assert third[1] == b"y" * (18 * 1024 * 1024)


def test_a_letter_that_the_topic_refuses_is_no_success(broker: EmbeddedBroker) -> None:
    topic = f"small-{uuid.uuid4().hex[:8]}"
    create_topic(broker.bootstrap, topic, partitions=1)
    settings = KafkaSettings(
        bootstrap_servers=[broker.bootstrap], dead_letter_topic=topic, max_record_bytes=1000
    )
    letters = DeadLetterTopic(settings)
    try:
        with pytest.raises(
            RetryError, match=r"the dead letter of gnomon.mirror\[2\]@41 cannot be sent to 'small-"
        ):
            letters.send(record(b"z" * 2_000_000), "invalid_json", "m")
        letters.send(record(b"fits"), "invalid_json", "m")
    finally:
        letters.close()
    assert [value for _, value, _ in read_all(broker.bootstrap, topic, 1)] == [b"fits"]


def test_a_broker_that_is_away_is_no_success() -> None:
    letters = DeadLetterTopic(KafkaSettings(bootstrap_servers=["127.0.0.1:1"]))
    with pytest.raises(RetryError, match="no Kafka broker answers at 127.0.0.1:1"):
        letters.send(record(b"v"), "invalid_json", "m")
    letters.close()
