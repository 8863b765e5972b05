"""The source on the real broker: order, gaps, back-pressure, commits, rebalance, start-up faults."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from compare.demo.broker import EmbeddedBroker, create_topic
from compare.ledger import Ledger
from ingest.assignment import Prepared, Prepares
from ingest.errors import FatalError
from ingest.hand_over import Delivered
from ingest.kafka_source import KafkaSource
from ingest.settings import DeliverySettings, KafkaSettings
from tests.fixtures.sasl_broker import RefusingBroker


def kafka_settings(bootstrap: str, topic: str, group: str | None = None) -> KafkaSettings:
    return KafkaSettings(
        bootstrap_servers=[bootstrap],
        topic=topic,
        group=group or f"g-{uuid.uuid4().hex[:8]}",
        # A group join on Tansu takes 3 s with these and 23 s with the defaults.
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
        max_poll_interval_ms=10_000,
    )


def produce(bootstrap: str, topic: str, values: Sequence[bytes], partition: int = 0) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, max_request_size=32 * 1024 * 1024)
    for value in values:
        producer.send(topic, value, key=b"k", headers=[("h", b"1")], partition=partition)
    producer.flush()
    producer.close()


def committed(bootstrap: str, group: str, topic: str, partition: int = 0) -> int | None:
    reader = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    try:
        offset = reader.committed(TopicPartition(topic, partition), timeout_ms=5000)
    finally:
        reader.close(autocommit=False)
    return None if offset is None else int(offset)


@contextlib.asynccontextmanager
async def running(
    settings: KafkaSettings, delivery: DeliverySettings | None = None, before: Prepares | None = None
) -> AsyncIterator[tuple[KafkaSource, Ledger]]:
    ledger = Ledger(settings.group)
    source = KafkaSource(settings, delivery or DeliverySettings(), ledger, before=before)
    await source.start()
    try:
        yield source, ledger
    finally:
        await source.close()


async def take(source: KafkaSource, count: int) -> list[Delivered]:
    return [await asyncio.wait_for(source.get(), 30) for _ in range(count)]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.02)


def store(ledger: Ledger, items: Sequence[Delivered]) -> None:
    ledger.store((i.record.position.partition, i.epoch, i.record.position.offset) for i in items)
    ledger.ranges_stored(ledger.take_ranges())


async def test_records_come_whole_and_only_what_is_stored_is_committed(
    broker: EmbeddedBroker, topic: str
) -> None:
    settings = kafka_settings(broker.bootstrap, topic)
    produce(broker.bootstrap, topic, [b"a", b"b", b"c", b"d"])
    async with running(settings) as (source, ledger):
        items = await take(source, 4)
        assert [i.record.value for i in items] == [b"a", b"b", b"c", b"d"]
        assert [i.record.position.offset for i in items] == [0, 1, 2, 3]
        assert {i.record.position.topic_id for i in items} == {
            str(uuid.UUID(items[0].record.position.topic_id))
        }
        assert items[0].record.key == b"k"
        assert items[0].record.headers == (("h", b"1"),)
        assert items[0].record.timestamp_ms > 1_600_000_000_000
        store(ledger, [items[0], items[1], items[3]])
        assert await source.commit()
    assert committed(broker.bootstrap, settings.group, topic) == 2
    async with running(settings) as (source, ledger):
        again = await take(source, 2)
        assert [i.record.value for i in again] == [b"c", b"d"]
        store(ledger, again)
        assert await source.commit()
    assert committed(broker.bootstrap, settings.group, topic) == 4


async def test_reading_rests_at_high_water_and_goes_on_below_half(broker: EmbeddedBroker, topic: str) -> None:
    settings = kafka_settings(broker.bootstrap, topic)
    produce(broker.bootstrap, topic, [b"%d" % n for n in range(100)])
    async with running(settings, DeliverySettings(max_queued_records=10)) as (source, _):
        await until(lambda: source.waiting[0] >= 10)
        # Two more polls and nothing more is taken in, while the group membership holds.
        await asyncio.sleep(0.3)
        assert source.waiting[0] == 10
        items = await take(source, 100)
        assert [i.record.value for i in items] == [b"%d" % n for n in range(100)]
        assert {i.epoch for i in items} == {items[0].epoch}


async def test_bytes_bound_the_queue_too(broker: EmbeddedBroker, topic: str) -> None:
    settings = kafka_settings(broker.bootstrap, topic)
    big = 2 * 1024 * 1024
    produce(broker.bootstrap, topic, [bytes(big)] * 8)
    async with running(settings, DeliverySettings(max_queued_bytes=2 * big)) as (source, _):
        await until(lambda: source.waiting[1] >= 2 * big)
        await asyncio.sleep(0.3)
        # The first poll does not know the sizes yet; one fetch (21 MiB) is the most it can bring.
        assert source.waiting[1] <= 21 * 1024 * 1024
        assert len(await take(source, 8)) == 8


async def test_a_record_of_eighteen_mebibytes_passes(broker: EmbeddedBroker, topic: str) -> None:
    settings = kafka_settings(broker.bootstrap, topic)
    produce(broker.bootstrap, topic, [b"x" * (18 * 1024 * 1024), b"after"])
    async with running(settings) as (source, _):
        items = await take(source, 2)
        assert [len(i.record.value or b"") for i in items] == [18 * 1024 * 1024, 5]


async def test_a_partition_on_hold_stands_and_the_others_go_on(broker: EmbeddedBroker) -> None:
    topic = f"two-{uuid.uuid4().hex[:8]}"
    create_topic(broker.bootstrap, topic, partitions=2)
    settings = kafka_settings(broker.bootstrap, topic)
    async with running(settings) as (source, _):
        await until(lambda: len(source.progress()) == 2)
        source.hold(0)
        await asyncio.sleep(0.3)
        produce(broker.bootstrap, topic, [b"held"], partition=0)
        produce(broker.bootstrap, topic, [b"flows"], partition=1)
        (item,) = await take(source, 1)
        assert item.record.value == b"flows"
        await until(lambda: source.progress()[1].highwater == 1)
        assert source.waiting == (0, 0)
        assert source.held_partitions == {0}


async def test_a_rebalance_ends_the_epoch_and_commits_what_is_stored(
    broker: EmbeddedBroker, topic: str
) -> None:
    settings = kafka_settings(broker.bootstrap, topic)
    produce(broker.bootstrap, topic, [b"a", b"b", b"c"])
    async with running(settings) as (first, ledger):
        items = await take(first, 3)
        store(ledger, items[:2])
        async with running(settings) as (second, _):
            await until(lambda: not ledger.is_current(0, items[0].epoch))
            # The group has two members and one partition: one of them gets the rest, from offset 2.
            tasks = [asyncio.create_task(source.get()) for source in (first, second)]
            done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=30)
            for task in pending:
                task.cancel()
            (item,) = [task.result() for task in done]
            assert item.record.value == b"c"
    assert committed(broker.bootstrap, settings.group, topic) == 2


async def test_a_partition_kept_through_a_rebalance_is_read_again_from_the_commit(
    broker: EmbeddedBroker, topic: str
) -> None:
    """kafka-python keeps its position in such a partition: what was dropped on revoke would be lost.

    The rebalance is told to the source as kafka-python tells it: Tansu's own takes 10 s at times and
    over 2 minutes at others.
    """
    produce(broker.bootstrap, topic, [b"a", b"b", b"c"])
    async with running(kafka_settings(broker.bootstrap, topic)) as (source, ledger):
        items = await take(source, 3)
        store(ledger, items[:2])
        assert await source.commit()
        await source._revoked([0], is_lost=True)
        assert not ledger.is_current(0, items[2].epoch)
        source._given([TopicPartition(topic, 0)])
        (again,) = await take(source, 1)
        assert again.record.value == b"c"
        assert again.epoch > items[2].epoch


class Step:
    """A preparation that ends when told to."""

    def __init__(self, topic_id: str, partition: int, start: int, *, is_committed: bool) -> None:
        self.asked = (partition, start, is_committed)
        self.topic_id = topic_id
        self.answer: Prepared | Exception | None = None
        self.is_cancelled = False

    def done(self) -> bool:
        return self.answer is not None

    def result(self) -> Prepared:
        assert self.answer is not None
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def cancel(self) -> None:
        self.is_cancelled = True


class Before:
    def __init__(self) -> None:
        self.steps: list[Step] = []

    def prepare(self, topic: str, topic_id: str, partition: int, start: int, *, is_committed: bool) -> Step:
        self.steps.append(Step(topic_id, partition, start, is_committed=is_committed))
        return self.steps[-1]


async def test_no_record_comes_before_what_is_stored_was_read_back(
    broker: EmbeddedBroker, topic: str
) -> None:
    before = Before()
    produce(broker.bootstrap, topic, [b"a", b"b"])
    async with running(kafka_settings(broker.bootstrap, topic), before=before) as (source, ledger):
        await until(lambda: len(before.steps) == 1)
        await asyncio.sleep(0.5)
        assert source.waiting == (0, 0)
        assert ledger.watermark(0) is None
        assert source.has_lease()
        before.steps[0].answer = Prepared({0: 7}, 5)
        items = await take(source, 2)
        assert [i.record.value for i in items] == [b"a", b"b"]
        assert before.steps[0].asked == (0, 0, False)
        store(ledger, items)
        assert await source.commit()
        source.reread([0])
        assert not ledger.is_current(0, items[0].epoch)
        await until(lambda: len(before.steps) == 2)
        assert before.steps[1].asked == (0, 2, True)


async def test_a_partition_taken_away_while_it_is_read_back_is_forgotten(
    broker: EmbeddedBroker, topic: str
) -> None:
    before = Before()
    produce(broker.bootstrap, topic, [b"a"])
    async with running(kafka_settings(broker.bootstrap, topic), before=before) as (source, _):
        await until(lambda: len(before.steps) == 1)
        await source._revoked([0], is_lost=True)
        assert before.steps[0].is_cancelled
        source._given([TopicPartition(topic, 0)])
        await until(lambda: len(before.steps) == 2)
        before.steps[0].answer = Prepared()
        await asyncio.sleep(0.3)
        assert source.waiting == (0, 0)
        before.steps[1].answer = Prepared()
        assert [i.record.value for i in await take(source, 1)] == [b"a"]


async def test_an_offset_of_an_earlier_topic_is_not_begun_at(broker: EmbeddedBroker, topic: str) -> None:
    settings = kafka_settings(broker.bootstrap, topic)
    produce(broker.bootstrap, topic, [b"a", b"b", b"c"])
    async with running(settings) as (source, ledger):
        store(ledger, await take(source, 2))
        assert await source.commit()
    before = Before()
    async with running(settings, before=before) as (source, _):
        await until(lambda: len(before.steps) == 1)
        assert before.steps[0].asked == (0, 2, True)
        before.steps[0].answer = Prepared(is_offset_foreign=True)
        await until(lambda: len(before.steps) == 2)
        assert before.steps[1].asked == (0, 0, False)
        before.steps[1].answer = Prepared()
        assert [i.record.value for i in await take(source, 3)] == [b"a", b"b", b"c"]


async def test_a_store_that_refuses_to_read_back_ends_the_source(broker: EmbeddedBroker, topic: str) -> None:
    before = Before()
    async with running(kafka_settings(broker.bootstrap, topic), before=before) as (source, _):
        await until(lambda: len(before.steps) == 1)
        before.steps[0].answer = FatalError("the store refuses")
        with pytest.raises(FatalError, match="the store refuses"):
            await asyncio.wait_for(source.get(), 30)
        assert not await source.commit()


async def test_a_partition_on_hold_goes_on_when_released(broker: EmbeddedBroker, topic: str) -> None:
    async with running(kafka_settings(broker.bootstrap, topic)) as (source, _):
        await until(lambda: len(source.progress()) == 1)
        source.hold(0)
        await asyncio.sleep(0.3)
        produce(broker.bootstrap, topic, [b"held"])
        await asyncio.sleep(0.3)
        assert source.waiting == (0, 0)
        source.release(0)
        assert [i.record.value for i in await take(source, 1)] == [b"held"]
        assert source.held_partitions == frozenset()


async def test_a_topic_made_anew_while_running_is_read_from_its_beginning(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metadata tells another id for the name, as kafka-python learns it from the broker.

    On Tansu a topic that is really made anew costs a rebalance of over a minute.
    """
    before = Before()
    produce(broker.bootstrap, topic, [b"0", b"1", b"2"])
    async with running(kafka_settings(broker.bootstrap, topic), before=before) as (source, ledger):
        await until(lambda: len(before.steps) == 1)
        before.steps[0].answer = Prepared()
        old = await take(source, 3)
        store(ledger, old[:2])
        assert await source.commit()
        new_id = uuid.uuid4()
        monkeypatch.setattr(source._cluster, "topic_id", lambda name: new_id)
        await until(lambda: len(before.steps) == 2)
        # Stored meanwhile, it belongs to the old topic: nothing of it may be committed to the new one.
        store(ledger, old[2:])
        assert ledger.to_commit() == {}
        assert (before.steps[1].topic_id, before.steps[1].asked) == (str(new_id), (0, 0, False))
        before.steps[1].answer = Prepared()
        items = await take(source, 3)
        assert [i.record.value for i in items] == [b"0", b"1", b"2"]
        assert {i.record.position.topic_id for i in items} == {str(new_id)}
        store(ledger, items[:1])
        assert await source.commit()
        await source.close()
    assert committed(broker.bootstrap, source._settings.group, topic) == 1


async def test_a_partition_taken_and_given_while_it_is_looked_at_is_looked_at_again(
    broker: EmbeddedBroker, topic: str
) -> None:
    """What was found out before it was taken is void: another owner may have stored more."""
    before = Before()
    produce(broker.bootstrap, topic, [b"0", b"1"])
    async with running(kafka_settings(broker.bootstrap, topic), before=before) as (source, _):
        await until(lambda: len(before.steps) == 1)
        look, place = source._beginnings.look, TopicPartition(topic, 0)

        def interrupted(*arguments: Any) -> Any:
            begin = look(*arguments)
            if begin is not None and len(before.steps) == 1:
                asyncio.run(source._revoked([0], is_lost=True))
                source._given([place])
            return begin

        source._beginnings.look = interrupted  # type: ignore[method-assign,assignment]
        before.steps[0].answer = Prepared()
        await until(lambda: len(before.steps) == 2)
        assert source.waiting == (0, 0)
        before.steps[1].answer = Prepared()
        assert [item.record.value for item in await take(source, 2)] == [b"0", b"1"]


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


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
