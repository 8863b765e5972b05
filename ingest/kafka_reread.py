"""Read records again by their position, outside any consumer group: nothing is committed or moved."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka import errors as kafka_errors

from ingest.errors import FatalError, RetryError
from ingest.kafka_client import Clients
from ingest.kafka_connect import consumer_options
from ingest.kafka_errors import judge
from ingest.kafka_options import require_broker
from ingest.kafka_prepare import NIL_TOPIC_ID
from ingest.kafka_records import raw_record
from ingest.records import RawRecord, SourcePosition
from ingest.settings import KafkaSettings

SILENCE_S = 20.0
"""How long a broker may give nothing before that is an error."""

_BOOTSTRAP_MS = 10_000
_POLL_MS = 500
_SEEK_BEYOND = 500
"""A wider gap is jumped over; a narrower one is read through, which is one fetch."""

_log = logging.getLogger(__name__)


def reread(
    settings: KafkaSettings, positions: Sequence[SourcePosition]
) -> Iterator[tuple[SourcePosition, RawRecord | None]]:
    """Yield each position of topic `settings.topic` with its record, by partition and offset.

    None stands for what Kafka no longer has: removed by retention or compaction, or of a topic that was made
    anew since (another topic id). Raises FatalError if no broker answers or it refuses us, RetryError if it
    goes silent on the way.
    """
    wanted = sorted(set(positions), key=lambda position: (position.partition, position.offset))
    if not wanted:
        return
    with_topic = [position for position in wanted if position.topic == settings.topic]
    if len(with_topic) != len(wanted):
        other = next(position.topic for position in wanted if position.topic != settings.topic)
        raise FatalError(f"records of topic {other!r} are asked for, and kafka.topic is {settings.topic!r}")
    require_broker(settings)
    clients = Clients()
    try:
        consumer = KafkaConsumer(
            **consumer_options(settings) | {"group_id": None},
            bootstrap_timeout_ms=_BOOTSTRAP_MS,
            kafka_client=clients,
        )
    except kafka_errors.KafkaError as error:
        clients.close()
        raise FatalError(str(judge(error, settings))) from error
    try:
        clients.cluster.config["allow_auto_create_topics"] = False
        for partition, group in groupby(wanted, key=lambda position: position.partition):
            yield from _partition(consumer, clients, settings, partition, list(group))
    except kafka_errors.KafkaError as error:
        raise RetryError(str(judge(error, settings))) from error
    finally:
        consumer.close(autocommit=False, timeout_ms=1000)


def _partition(
    consumer: Any, clients: Clients, settings: KafkaSettings, partition: int, wanted: list[SourcePosition]
) -> Iterator[tuple[SourcePosition, RawRecord | None]]:
    here = TopicPartition(settings.topic, partition)
    consumer.assign([here])
    topic_id = _topic_id(consumer, clients, here)
    if topic_id is None:
        _log.warning("partition %d of %s does not exist any more", partition, settings.topic)
    waiting = []
    for position in wanted:
        if topic_id is not None and position.topic_id == topic_id:
            waiting.append(position)
        else:
            yield position, None
    at = 0
    reached: int | None = None
    while at < len(waiting):
        offset = waiting[at].offset
        if reached is None or offset - reached > _SEEK_BEYOND:
            consumer.seek(here, offset)
            reached = offset
        for record in _next_records(consumer, here, settings):
            while at < len(waiting) and waiting[at].offset < record.offset:
                yield waiting[at], None
                at += 1
            if at < len(waiting) and waiting[at].offset == record.offset:
                yield waiting[at], raw_record(record, waiting[at].topic_id)
                at += 1
        reached = consumer.position(here, timeout_ms=_BOOTSTRAP_MS)
        end = consumer.highwater(here)
        while at < len(waiting) and end is not None and end <= waiting[at].offset:
            yield waiting[at], None
            at += 1
        # Transaction markers and compacted offsets move the position and give no record.
        while at < len(waiting) and reached > waiting[at].offset:
            yield waiting[at], None
            at += 1


def _next_records(consumer: Any, here: Any, settings: KafkaSettings) -> list[Any]:
    """The next records, or none where the broker says that there are no more."""
    deadline = time.monotonic() + SILENCE_S
    before = consumer.position(here, timeout_ms=_BOOTSTRAP_MS)
    while True:
        records = consumer.poll(timeout_ms=_POLL_MS).get(here)
        if records:
            return list(records)
        end = consumer.highwater(here)
        position = consumer.position(here, timeout_ms=_BOOTSTRAP_MS)
        if position != before or (end is not None and position >= end):
            return []
        if time.monotonic() > deadline:
            raise RetryError(
                f"Kafka gave nothing from {settings.topic}[{here.partition}]@{position} on "
                f"for {SILENCE_S:.0f} s, and says that it holds offsets up to {end}"
            )


def _topic_id(consumer: Any, clients: Clients, here: Any) -> str | None:
    """The broker's id of the topic; None if there is no such partition."""
    deadline = time.monotonic() + _BOOTSTRAP_MS / 1000
    while True:
        partitions = consumer.partitions_for_topic(here.topic)
        if partitions:
            break
        if time.monotonic() > deadline:
            return None
        time.sleep(0.1)
    if here.partition not in partitions:
        return None
    found = clients.cluster.topic_id(here.topic)
    return NIL_TOPIC_ID if found is None else str(found)
