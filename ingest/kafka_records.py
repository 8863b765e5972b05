"""From kafka-python's records to ours."""

from __future__ import annotations

from typing import Any

from ingest.records import RawRecord, SourcePosition


def raw_record(record: Any, topic_id: str) -> RawRecord:
    """What kafka-python delivered, as our own record."""
    return RawRecord(
        position=SourcePosition(record.topic, topic_id, record.partition, record.offset),
        timestamp_ms=record.timestamp,
        key=record.key,
        value=record.value,
        headers=tuple((name, value or b"") for name, value in record.headers),
    )
