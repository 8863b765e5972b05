"""The dead-letter topic: original bytes, where they came from, and why they could not be used."""

from __future__ import annotations

import logging
from typing import Any

from kafka import KafkaProducer
from kafka import errors as kafka_errors

from ingest.errors import FatalError, RetryError
from ingest.kafka_client import Clients
from ingest.kafka_errors import judge
from ingest.kafka_options import common_options, require_reachable
from ingest.records import RawRecord
from ingest.redact import Redactor
from ingest.settings import KafkaSettings
from ingest.shape_guess import guess_shape

_HEADERS_BYTES = 1024 * 1024
_MAX_MESSAGE_CHARACTERS = 1000
_CONNECT_MS = 5_000
_DELIVERY_MS = 10_000

_log = logging.getLogger(__name__)


class DeadLetterTopic:
    """A producer to `kafka.dead_letter_topic`, connected when the first letter is sent.

    Not thread-safe: one thread sends and closes. Headers of a letter are the record's own, then
    `gnomon.topic`, `.topic_id`, `.partition`, `.offset`, `.timestamp_ms`, `.reason`, `.message` and
    `.schema_guess` (what the record looks like); and `.is_redacted` where `redactor` took something out, so
    that these are not the original bytes.
    """

    def __init__(self, settings: KafkaSettings, redactor: Redactor | None = None) -> None:
        self._settings = settings
        self._redactor = redactor
        self._producer: Any = None

    def send(self, raw: RawRecord, reason: str, message: str) -> None:
        """Send one letter and wait until the broker has it.

        Raises RetryError if it has not: the caller must try again and commit nothing past the
        record. Also then if the topic's `max.message.bytes` is too small, which a person must raise.
        """
        is_redacted, guess = False, guess_shape(raw.value)
        if self._redactor is not None:
            raw, message, is_redacted = self._redactor.letter(raw, message)
        headers = [*raw.headers, *_own_headers(raw, reason, message, guess)]
        if is_redacted:
            headers.append(("gnomon.is_redacted", b"true"))
        try:
            if self._producer is None:
                self._producer = self._connect()
            # A record without value is a letter without value: kafka-python wants a key or a value.
            future = self._producer.send(
                self._settings.dead_letter_topic,
                key=raw.key,
                value=raw.value if raw.value is not None or raw.key is not None else b"",
                headers=headers,
            )
            future.get(timeout=_DELIVERY_MS / 1000 + 5)
        except (FatalError, kafka_errors.KafkaError) as error:
            place = f"{raw.position.topic}[{raw.position.partition}]@{raw.position.offset}"
            raise RetryError(
                f"the dead letter of {place} cannot be sent to {self._settings.dead_letter_topic!r}: "
                f"{error if isinstance(error, FatalError) else judge(error, self._settings)}"
            ) from error

    def close(self) -> None:
        """Close the connection. Nothing can be waiting: `send` waits for each letter."""
        if self._producer is not None:
            self._producer.close(timeout=3)
            self._producer = None

    def _connect(self) -> Any:
        require_reachable(self._settings.bootstrap_servers)
        clients = Clients()
        try:
            return KafkaProducer(
                **common_options(self._settings),
                acks="all",
                max_request_size=self._settings.max_record_bytes + _HEADERS_BYTES,
                bootstrap_timeout_ms=_CONNECT_MS,
                max_block_ms=_CONNECT_MS,
                request_timeout_ms=_CONNECT_MS,
                delivery_timeout_ms=_DELIVERY_MS,
                metrics_enabled=False,
                kafka_client=clients,
            )
        except kafka_errors.KafkaError:
            clients.close()
            raise


def _own_headers(raw: RawRecord, reason: str, message: str, guess: str) -> list[tuple[str, bytes]]:
    own = {
        "topic": raw.position.topic,
        "topic_id": raw.position.topic_id,
        "partition": str(raw.position.partition),
        "offset": str(raw.position.offset),
        "timestamp_ms": str(raw.timestamp_ms),
        "reason": reason,
        "message": message[:_MAX_MESSAGE_CHARACTERS],
        "schema_guess": guess,
    }
    return [(f"gnomon.{name}", value.encode("utf-8", "replace")) for name, value in own.items()]
