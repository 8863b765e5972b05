"""The first connection of the consumer: everything that can be wrong at start-up is said here."""

from __future__ import annotations

import time
from threading import Event
from typing import Any

from kafka import KafkaConsumer
from kafka import errors as kafka_errors

from ingest.errors import FatalError
from ingest.kafka_client import Clients
from ingest.kafka_errors import judge
from ingest.kafka_options import common_options, require_reachable, split_address
from ingest.settings import KafkaSettings

_LOOK_AGAIN_S = 0.5
_REQUEST_TIMEOUT_MS = 20_000


def consumer_options(settings: KafkaSettings) -> dict[str, Any]:
    """Keyword arguments of our KafkaConsumer. Raises FatalError as `common_options` does."""
    fetch_bytes = settings.max_record_bytes + 1024 * 1024
    return common_options(settings) | {
        "group_id": settings.group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "allow_auto_create_topics": False,
        "isolation_level": "read_committed",
        "session_timeout_ms": settings.session_timeout_ms,
        "heartbeat_interval_ms": settings.heartbeat_interval_ms,
        "max_poll_interval_ms": settings.max_poll_interval_ms,
        "request_timeout_ms": _REQUEST_TIMEOUT_MS,
        # One record may fill a whole fetch; both limits are above the largest that we accept.
        "fetch_max_bytes": fetch_bytes,
        "max_partition_fetch_bytes": fetch_bytes,
        # An outage of an hour must not leave us asleep for long after it.
        "reconnect_backoff_max_ms": 5_000,
        # The topic's id is learned from metadata; a topic made anew is noticed within this time.
        "metadata_max_age_ms": settings.metadata_max_age_ms,
        "metrics_enabled": False,
    }


def connect_consumer(
    settings: KafkaSettings, listener: Any, timeout_s: float, give_up: Event
) -> tuple[Any, Any]:
    """A subscribed KafkaConsumer and its cluster metadata, once the topic is known to exist.

    Raises FatalError when no broker answers within `timeout_s` seconds, the broker refuses us, or
    the topic does not exist by then; also when `give_up` is set meanwhile.
    """
    deadline = time.monotonic() + timeout_s
    options = consumer_options(settings)
    _wait_for_port(settings, deadline, give_up)
    clients = Clients()
    try:
        consumer = KafkaConsumer(
            **options,
            bootstrap_timeout_ms=max(1000, round((deadline - time.monotonic()) * 1000)),
            kafka_client=clients,
        )
        try:
            cluster = clients.cluster
            # kafka-python 3.0 does not pass its own option on: the metadata request would make the topic.
            cluster.config["allow_auto_create_topics"] = False
            consumer.subscribe([settings.topic], listener=listener)
            _wait_for_topic(settings, cluster, deadline, give_up)
        except BaseException:
            consumer.close(autocommit=False, timeout_ms=1000)
            raise
    except kafka_errors.KafkaTimeoutError as error:
        clients.close()
        servers = ", ".join(settings.bootstrap_servers)
        raise FatalError(
            f"no Kafka broker answers at {servers} within {timeout_s:.0f} s with kafka.security_protocol = "
            f"{settings.security_protocol}: {clients.last_error or 'the port is open and silent'}"
        ) from error
    except kafka_errors.KafkaError as error:
        clients.close()
        fault = judge(error, settings)
        raise fault if isinstance(fault, FatalError) else FatalError(str(fault)) from error
    return consumer, cluster


def _wait_for_port(settings: KafkaSettings, deadline: float, give_up: Event) -> None:
    for server in settings.bootstrap_servers:
        split_address(server)
    while True:
        left = deadline - time.monotonic()
        try:
            return require_reachable(settings.bootstrap_servers, timeout_s=max(0.1, min(3.0, left)))
        except FatalError:
            if left <= _LOOK_AGAIN_S or give_up.wait(_LOOK_AGAIN_S):
                raise


def _wait_for_topic(settings: KafkaSettings, cluster: Any, deadline: float, give_up: Event) -> None:
    while not cluster.partitions_for_topic(settings.topic):
        if settings.topic in cluster.unauthorized_topics:
            raise kafka_errors.TopicAuthorizationFailedError(settings.topic)
        if time.monotonic() > deadline or give_up.wait(0.05):
            servers = ", ".join(settings.bootstrap_servers)
            raise FatalError(
                f"topic {settings.topic!r} does not exist on Kafka at {servers}: create it or set kafka.topic"
            )
