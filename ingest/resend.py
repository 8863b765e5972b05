"""Send records to the mirror topic once more, as they were, so that a running service takes them up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafka import errors as kafka_errors

from ingest.errors import FatalError
from ingest.kafka_errors import judge
from ingest.kafka_producer import DELIVERY_S, open_producer
from ingest.records import RawRecord, SourcePosition
from ingest.replay_header import REPLAY_OF, replay_of
from ingest.settings import KafkaSettings


def resend(
    records: Iterable[RawRecord], settings: KafkaSettings, *, keep_times: bool = False
) -> Iterator[tuple[RawRecord, SourcePosition]]:
    """Send each and yield it with its new position once the broker has it, in order.

    Key, value and headers are the record's own, and the header `gnomon.replay_of` says where it was. Its time
    is the present, or with `keep_times` its old one, which a broker drops at once if its retention is over.
    The new position has no topic id. Raises FatalError if the broker is away, refuses us or a record.
    """
    with open_producer(settings) as producer:
        for record in records:
            headers = [(name, value) for name, value in record.headers if name != REPLAY_OF]
            headers.append((REPLAY_OF, replay_of(record.position).encode("utf-8", "replace")))
            try:
                # kafka-python wants a key or a value.
                empty = b"" if record.key is None and record.value is None else None
                sent = producer.send(
                    settings.topic,
                    key=record.key,
                    value=record.value if record.value is not None else empty,
                    headers=headers,
                    timestamp_ms=record.timestamp_ms if keep_times and record.timestamp_ms >= 0 else None,
                ).get(timeout=DELIVERY_S + 5)
            except kafka_errors.KafkaError as error:
                where = f"{record.position.topic}[{record.position.partition}]@{record.position.offset}"
                raise FatalError(f"{where} cannot be sent again: {judge(error, settings)}") from error
            yield record, SourcePosition(sent.topic, "", sent.partition, sent.offset)
