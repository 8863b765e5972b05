"""A partition that was paused with its records half taken is read on when it is resumed."""

from __future__ import annotations

import uuid

from compare.demo.broker import EmbeddedBroker, create_topic
from ingest.settings import DeliverySettings
from tests.ingest.kafka_rig import kafka_settings, produce, running, take, until


async def test_a_partition_held_half_taken_goes_on_though_another_was_read_meanwhile(
    broker: EmbeddedBroker,
) -> None:
    topic = f"test-{uuid.uuid4().hex[:12]}"
    create_topic(broker.bootstrap, topic, partitions=2)
    for partition in range(2):
        produce(broker.bootstrap, topic, [b"%d" % n for n in range(100)], partition)
    settings = kafka_settings(broker.bootstrap, topic)
    async with running(settings, DeliverySettings(max_queued_records=10)) as (source, _):
        await until(lambda: 10 in {at.position for at in source.progress().values()})
        held = next(p for p, at in source.progress().items() if at.position == 10)
        source.hold(held)
        others = await take(source, 110)
        assert sum(item.record.position.partition == held for item in others) == 10
        source.release(held)
        rest = await take(source, 90)
        assert [item.record.position.offset for item in rest] == list(range(10, 100))
        assert {item.record.position.partition for item in rest} == {held}
