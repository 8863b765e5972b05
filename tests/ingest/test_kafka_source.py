"""The source on the real broker: order, back-pressure, commits, holds, rebalance."""

from __future__ import annotations

import asyncio
import uuid

from kafka import TopicPartition

from compare.demo.broker import EmbeddedBroker, create_topic
from ingest.settings import DeliverySettings
from tests.ingest.kafka_rig import committed, kafka_settings, produce, running, store, take, until


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
