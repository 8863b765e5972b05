from __future__ import annotations

import uuid

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from compare.demo.broker import EmbeddedBroker, create_topic
from ingest.errors import FatalError
from ingest.kafka_client import Clients
from ingest.kafka_reread import reread
from ingest.records import RawRecord, SourcePosition
from ingest.resend import resend
from ingest.settings import KafkaSettings


def settings(broker: EmbeddedBroker, topic: str) -> KafkaSettings:
    return KafkaSettings(bootstrap_servers=[broker.bootstrap], topic=topic)


@pytest.fixture
def two_partitions(broker: EmbeddedBroker) -> str:
    name = f"test-{uuid.uuid4().hex[:12]}"
    create_topic(broker.bootstrap, name, partitions=2)
    return name


def produce(broker: EmbeddedBroker, topic: str, partition: int, count: int) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for number in range(count):
        producer.send(
            topic,
            key=b"k%d" % number,
            value=b"%d of %d" % (number, partition),
            headers=[("h", b"\xff%d" % number)],
            partition=partition,
            timestamp_ms=1_700_000_000_000 + number,
        )
    producer.flush()
    producer.close()


def delivered(kafka: KafkaSettings, counts: dict[int, int]) -> list[RawRecord]:
    """So many records of each partition, as a plain consumer gets them."""
    clients = Clients()
    consumer = KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest", kafka_client=clients
    )
    places = [TopicPartition(kafka.topic, partition) for partition in counts]
    consumer.assign(places)
    records = [record for _, record in zip(range(sum(counts.values())), consumer, strict=False)]
    topic_id = str(clients.cluster.topic_id(kafka.topic))
    consumer.close()
    return [
        RawRecord(
            SourcePosition(kafka.topic, topic_id, record.partition, record.offset),
            record.timestamp,
            record.key,
            record.value,
            tuple(record.headers),
        )
        for record in records
    ]


def test_records_come_back_as_the_source_delivered_them(broker: EmbeddedBroker, two_partitions: str) -> None:
    produce(broker, two_partitions, 0, 1200)
    produce(broker, two_partitions, 1, 5)
    kafka = settings(broker, two_partitions)
    first = delivered(kafka, {0: 1200, 1: 5})
    by_position = {record.position: record for record in first}
    wanted = [position for position in by_position if position.offset in (0, 3, 4, 1199)]
    assert len(wanted) == 7

    found = dict(reread(kafka, wanted[::-1]))

    assert found == {position: by_position[position] for position in wanted}
    assert [(p.partition, p.offset) for p in found] == sorted((p.partition, p.offset) for p in wanted)


def test_what_kafka_does_not_have_is_none(broker: EmbeddedBroker, two_partitions: str) -> None:
    produce(broker, two_partitions, 0, 3)
    kafka = settings(broker, two_partitions)
    real = (delivered(kafka, {0: 3}))[1].position
    beyond = SourcePosition(real.topic, real.topic_id, 0, 77)
    empty = SourcePosition(real.topic, real.topic_id, 1, 0)
    no_partition = SourcePosition(real.topic, real.topic_id, 9, 0)
    of_another = SourcePosition(real.topic, str(uuid.uuid4()), 0, 1)

    found = dict(reread(kafka, [beyond, empty, no_partition, of_another, real]))

    assert {position: record is not None for position, record in found.items()} == {
        real: True,
        beyond: False,
        empty: False,
        no_partition: False,
        of_another: False,
    }


def test_another_topic_and_an_absent_broker_are_said(broker: EmbeddedBroker, topic: str) -> None:
    kafka = settings(broker, topic)
    with pytest.raises(FatalError, match="'other' are asked for, and kafka.topic is"):
        list(reread(kafka, [SourcePosition("other", "", 0, 0)]))
    away = KafkaSettings(bootstrap_servers=["127.0.0.1:1"], topic=topic)
    with pytest.raises(FatalError, match="no Kafka broker answers at 127.0.0.1:1"):
        list(reread(away, [SourcePosition(topic, "", 0, 0)]))
    assert list(reread(away, [])) == []


def test_what_is_sent_again_is_the_same_and_says_where_it_was(broker: EmbeddedBroker, topic: str) -> None:
    kafka = settings(broker, topic)
    was = SourcePosition(topic, "id-1", 4, 12)
    record = RawRecord(was, 1_700_000_000_123, b"\x00key", b"\xff{broken", (("a", b"\xfe"), ("a", b"2")))
    nothing = RawRecord(was, -1, None, None)

    sent = list(resend([record, nothing], kafka, keep_times=True))

    assert [(one.value, position.offset) for one, position in sent] == [(b"\xff{broken", 0), (None, 1)]
    first, second = delivered(kafka, {0: 2})
    mark = ("gnomon.replay_of", f"{topic}/id-1/4/12".encode())
    assert (first.key, first.value, first.timestamp_ms) == (b"\x00key", b"\xff{broken", 1_700_000_000_123)
    assert first.headers == (*record.headers, mark)
    assert (second.key, second.value, second.headers) == (None, b"", (mark,))
    assert second.timestamp_ms > 1_700_000_000_123


def test_a_record_that_is_sent_a_third_time_names_its_last_place_only(
    broker: EmbeddedBroker, topic: str
) -> None:
    kafka = settings(broker, topic)
    earlier = ("gnomon.replay_of", b"t/i/0/1")
    record = RawRecord(SourcePosition(topic, "id", 0, 9), 0, None, b"x", (earlier,))
    list(resend([record], kafka))
    assert (delivered(kafka, {0: 1}))[0].headers == (("gnomon.replay_of", f"{topic}/id/0/9".encode()),)
