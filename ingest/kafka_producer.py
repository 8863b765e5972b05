"""A producer that fails fast and clearly, for commands that a person waits for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka import KafkaProducer
from kafka import errors as kafka_errors

from ingest.errors import FatalError
from ingest.kafka_client import Clients
from ingest.kafka_errors import judge
from ingest.kafka_options import common_options, require_broker
from ingest.settings import KafkaSettings

HEADROOM_BYTES = 1024 * 1024
"""For the headers and the frame of the largest record."""
DELIVERY_S = 20.0
"""How long the broker may take to confirm a record."""

_REACH_S = 9.0
_CONNECT_MS = 5_000

_log = logging.getLogger(__name__)


@contextmanager
def open_producer(settings: KafkaSettings) -> Iterator[Any]:
    """A KafkaProducer whose topic `settings.topic` is known to exist; closed at the end.

    Raises FatalError if no broker answers, it refuses us, or the topic does not exist.
    """
    options = common_options(settings)
    require_broker(settings, timeout_s=_REACH_S / len(settings.bootstrap_servers))
    clients = Clients()
    try:
        producer = KafkaProducer(
            **options,
            acks="all",
            max_request_size=settings.max_record_bytes + HEADROOM_BYTES,
            # A broker measures a whole batch against max.message.bytes, 1 MiB where it was not raised.
            batch_size=256 * 1024,
            linger_ms=20,
            bootstrap_timeout_ms=_CONNECT_MS,
            max_block_ms=_CONNECT_MS,
            request_timeout_ms=_CONNECT_MS,
            delivery_timeout_ms=round(DELIVERY_S * 1000),
            metrics_enabled=False,
            kafka_client=clients,
        )
    except kafka_errors.KafkaError as error:
        clients.close()
        raise FatalError(_no_bootstrap(error, settings)) from error
    try:
        _require_topic(producer, clients, settings)
        yield producer
    finally:
        _close(producer)


def _close(producer: Any) -> None:
    """Close, dropping what a broker that went away never took.

    kafka-python 3.0 raises out of `close` where records are left, before it ends its thread.
    """
    try:
        producer.close(timeout=_CONNECT_MS / 1000)
    except kafka_errors.KafkaTimeoutError:
        producer._sender.force_close()
        producer._sender.join(_CONNECT_MS / 1000)
        if producer._sender.is_alive():
            _log.warning("the connection to Kafka could not be closed; it ends with this process")
        else:
            producer.close(timeout=0)


def _require_topic(producer: Any, clients: Clients, settings: KafkaSettings) -> None:
    """Raise FatalError where the topic is missing: made by accident it would refuse large records."""
    # kafka-python 3.0 does not pass its own option on: the metadata request would make the topic.
    clients.cluster.config["allow_auto_create_topics"] = False
    try:
        producer.partitions_for(settings.topic)
    except kafka_errors.KafkaTimeoutError as error:
        servers = ", ".join(settings.bootstrap_servers)
        raise FatalError(
            f"topic {settings.topic!r} does not exist on Kafka at {servers}: create it or set kafka.topic"
        ) from error
    except kafka_errors.KafkaError as error:
        raise FatalError(str(judge(error, settings))) from error


def _no_bootstrap(error: Exception, settings: KafkaSettings) -> str:
    if isinstance(error, kafka_errors.KafkaTimeoutError):
        servers = ", ".join(settings.bootstrap_servers)
        asks_password = settings.security_protocol.startswith("SASL")
        # Some brokers close the connection on a wrong password and say nothing.
        doubt = f"kafka.security_protocol = {settings.security_protocol}" + (
            f" and the password of {settings.username!r}" if asks_password else ""
        )
        return f"no Kafka broker answers at {servers}: the port is open; check {doubt}"
    return str(judge(error, settings))
