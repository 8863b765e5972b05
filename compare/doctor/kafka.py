"""Is the broker there, are the topics fit, and may we use them?"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType

from compare.doctor.check import Check, fail, ok, unknown, warn
from ingest.errors import FatalError, GnomonError
from ingest.kafka_client import Clients
from ingest.kafka_connect import consumer_options
from ingest.kafka_errors import judge
from ingest.kafka_group import experiment_in
from ingest.kafka_options import common_options, require_broker
from ingest.settings import KafkaSettings

_TIMEOUT_MS = 10_000
_FUTURE_S = 60.0


def check_kafka(settings: KafkaSettings, experiment: str = "") -> list[Check]:
    """Look at broker, topics, sizes, group and clock. Nothing is written, committed or joined."""
    if importlib.util.find_spec("crc32c") is None:
        return [
            fail("kafka: crc32c", "the package is missing", "pip install crc32c: 20 times slower without")
        ]
    checks = [ok("kafka: crc32c", "installed")]
    servers = ", ".join(settings.bootstrap_servers)
    try:
        require_broker(settings)
        with _consumer(settings) as (consumer, clients):
            checks.append(ok("kafka: broker", f"answers at {servers} ({settings.security_protocol})"))
            partitions = _partitions(consumer, clients, settings.topic)
            checks.append(_topic(settings.topic, partitions, "the producer sends to"))
            dead = _partitions(consumer, clients, settings.dead_letter_topic)
            checks.append(_topic(settings.dead_letter_topic, dead, "dead letters go to"))
            if partitions:
                checks += _group(consumer, settings, partitions, experiment)
                checks.append(_clock(consumer, settings, partitions))
    except kafka_errors.KafkaError as error:
        checks.append(_away(judge(error, settings)))
        return checks
    except FatalError as error:
        checks.append(_away(error))
        return checks
    checks += _sizes(settings)
    return checks


def _away(error: GnomonError) -> Check:
    advice = "check [kafka] bootstrap_servers, security_protocol and username, and GNOMON_KAFKA_PASSWORD"
    return fail("kafka: broker", str(error), advice)


@contextmanager
def _consumer(settings: KafkaSettings) -> Iterator[tuple[Any, Clients]]:
    clients = Clients()
    try:
        consumer = KafkaConsumer(
            **consumer_options(settings), bootstrap_timeout_ms=_TIMEOUT_MS, kafka_client=clients
        )
    except kafka_errors.KafkaError:
        clients.close()
        raise
    try:
        clients.cluster.config["allow_auto_create_topics"] = False
        yield consumer, clients
    finally:
        consumer.close(autocommit=False, timeout_ms=1000)


def _partitions(consumer: Any, clients: Clients, topic: str) -> set[int]:
    try:
        found = consumer.partitions_for_topic(topic)
    except kafka_errors.KafkaTimeoutError:
        found = None
    if topic in clients.cluster.unauthorized_topics:
        raise kafka_errors.TopicAuthorizationFailedError(topic)
    return set(found or ())


def _topic(topic: str, partitions: set[int], what: str) -> Check:
    name = f"kafka: topic {topic}"
    if not partitions:
        return fail(name, "does not exist", f"create it: it is what {what}")
    return ok(name, f"{len(partitions)} partition{'s' if len(partitions) > 1 else ''}")


def _group(consumer: Any, settings: KafkaSettings, partitions: set[int], experiment: str) -> list[Check]:
    name = f"kafka: group {settings.group}"
    places = [TopicPartition(settings.topic, partition) for partition in sorted(partitions)]
    committed = [consumer.committed(place, metadata=True, timeout_ms=_TIMEOUT_MS) for place in places]
    known = [one for one in committed if one is not None]
    if not known:
        return [ok(name, "has committed nothing yet: it begins with the oldest record")]
    seen = f"has committed offsets of {len(known)} of {len(partitions)} partitions"
    others = sorted({experiment_in(one.metadata) for one in known} - {"", experiment})
    if experiment and others:
        advice = "two experiments in one group take each other's records: give each a kafka.group of its own"
        return [warn(name, f"{seen}, by experiment {', '.join(others)}", advice)]
    return [ok(name, seen)]


def _clock(consumer: Any, settings: KafkaSettings, partitions: set[int]) -> Check:
    """The newest record of each partition tells the producers' clocks."""
    name = "kafka: clock"
    places = [TopicPartition(settings.topic, partition) for partition in sorted(partitions)]
    consumer.assign(places)
    consumer.seek_to_end(*places)
    begins = consumer.beginning_offsets(places)
    ends = {place: consumer.position(place, timeout_ms=_TIMEOUT_MS) for place in places}
    filled = [place for place in places if ends[place] is not None and ends[place] > begins[place]]
    if not filled:
        return unknown(name, "there is no record yet")
    consumer.assign(filled)
    for place in filled:
        consumer.seek(place, ends[place] - 1)
    polled = consumer.poll(timeout_ms=_TIMEOUT_MS)
    stamps = [record.timestamp for records in polled.values() for record in records]
    if not stamps:
        return unknown(name, "the newest record could not be read")
    newest = max(stamps) / 1000
    ahead_s = newest - datetime.now(UTC).timestamp()
    if ahead_s > _FUTURE_S:
        advice = "set the producers' clocks by NTP: such records count as is_clock_suspect"
        return warn(name, f"the newest record is dated {ahead_s:.0f} s into the future", advice)
    return ok(name, f"the newest record is {max(0.0, -ahead_s):.0f} s old")


def _sizes(settings: KafkaSettings) -> list[Check]:
    """Whether each topic takes the largest record; a broker's default is 1 MiB."""
    try:
        admin = KafkaAdminClient(**common_options(settings), request_timeout_ms=_TIMEOUT_MS)
    except kafka_errors.KafkaError as error:
        return [unknown("kafka: message size", str(judge(error, settings)))]
    checks = []
    try:
        for topic in (settings.topic, settings.dead_letter_topic):
            checks.append(_size(admin, topic, settings))
    finally:
        admin.close()
    return checks


def _size(admin: Any, topic: str, settings: KafkaSettings) -> Check:
    name = f"kafka: message size of {topic}"
    try:
        described = admin.describe_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all"
        )
    except kafka_errors.KafkaError as error:
        return unknown(name, str(judge(error, settings)))
    found = _config(described, "max.message.bytes")
    if found is None:
        return unknown(name, "the broker does not tell max.message.bytes")
    wanted = settings.max_record_bytes
    if found < wanted:
        advice = f"set max.message.bytes of the topic to {wanted}: top-20 logprobs of 200 tokens are 369 KB"
        return warn(name, f"max.message.bytes is {found}", advice)
    return ok(name, f"max.message.bytes is {found}")


def _config(described: Any, name: str) -> int | None:
    """The number under `name`, wherever kafka-python's answer of this version has it."""
    if isinstance(described, dict):
        for key, value in described.items():
            if key == name:
                text = value.get("value") if isinstance(value, dict) else value
                return int(text) if text is not None and str(text).isdigit() else None
            found = _config(value, name)
            if found is not None:
                return found
    return None
