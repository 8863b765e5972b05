"""A source on the real broker, and what its tests produce, take and commit."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable, Sequence

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from compare.ledger import Ledger
from ingest.assignment import Prepares
from ingest.hand_over import Delivered
from ingest.kafka_source import KafkaSource
from ingest.settings import DeliverySettings, KafkaSettings


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
