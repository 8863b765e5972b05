"""The source on the real broker: no record before it is known where its partition begins."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from kafka import TopicPartition

from compare.demo.broker import EmbeddedBroker
from ingest.assignment import Prepared
from ingest.errors import FatalError
from tests.ingest.kafka_rig import committed, kafka_settings, produce, running, store, take, until


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


async def test_what_was_begun_for_a_partition_before_it_was_taken_is_begun_anew(
    broker: EmbeddedBroker, topic: str
) -> None:
    """It may be taken while Kafka is asked for its offset: reading back then begins from an old one."""
    before = Before()
    produce(broker.bootstrap, topic, [b"0", b"1"])
    async with running(kafka_settings(broker.bootstrap, topic), before=before) as (source, _):
        await until(lambda: len(before.steps) == 1)
        before.steps[0].answer = Prepared()
        await take(source, 2)
        prepare, place = before.prepare, TopicPartition(topic, 0)

        def interrupted(*arguments: Any, **options: Any) -> Any:
            step = prepare(*arguments, **options)
            if len(before.steps) == 2:
                asyncio.run(source._revoked([0], is_lost=True))
                source._given([place])
            return step

        before.prepare = interrupted  # type: ignore[method-assign]
        source.reread([0])
        await until(lambda: len(before.steps) == 3)
        assert before.steps[1].is_cancelled
        before.steps[2].answer = Prepared()
        assert [item.record.value for item in await take(source, 2)] == [b"0", b"1"]
