"""Records as they come from Kafka, and the mirrored request that a decoder makes of one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class SourcePosition(msgspec.Struct, frozen=True, order=True):
    """Where a record came from. `topic_id` is the broker's UUID: a topic made anew gets another."""

    topic: str
    topic_id: str
    partition: int
    offset: int


class RawRecord(msgspec.Struct, frozen=True):
    """One record exactly as Kafka delivered it. `timestamp_ms` is Kafka's, Unix milliseconds."""

    position: SourcePosition
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class ProductionAnswer(msgspec.Struct, frozen=True):
    """Production's own answer, where the mirror recorded it. `body` is JSON or a string."""

    status: int | None = None
    content_type: str | None = None
    body: Any = None
    latency_ms: float | None = None


class ServedBy(msgspec.Struct, frozen=True):
    """What served the request in production, as far as the mirror knows."""

    model: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    quantization: str | None = None
    weights_sha256: str | None = None
    config_hash: str | None = None


class MirroredRequest(msgspec.Struct, frozen=True):
    """One production request, decoded.

    `body` is the OpenAI request as sent. `request_hash` is the hex SHA-256 of its canonical JSON
    (sorted keys), 32 characters. `mirrored_at` is Kafka's time clamped to within 7 days of
    `ingested_at`; `is_clock_suspect` says that it was clamped. Both are UTC.
    """

    position: SourcePosition
    request_id: str
    body: dict[str, Any]
    request_hash: str
    mirrored_at: datetime
    ingested_at: datetime
    is_clock_suspect: bool = False
    has_lone_surrogates: bool = False
    sent_at: datetime | None = None
    tenant: str = ""
    route: str = ""
    endpoint: str = "/v1/chat/completions"
    production: ProductionAnswer | None = None
    served_by: ServedBy = ServedBy()
    tags: dict[str, str] = {}
    source_format: str = "gnomon.mirror/1"

    @property
    def served_model(self) -> str:
        """The name that the client asked for: the key of the model map."""
        model = self.body.get("model")
        return model if isinstance(model, str) else ""
