"""A mirrored request for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ingest.records import MirroredRequest, SourcePosition


def mirrored(
    body: dict[str, Any], request_id: str = "r-1", endpoint: str = "/v1/chat/completions"
) -> MirroredRequest:
    moment = datetime(2026, 11, 29, 3, tzinfo=UTC)
    return MirroredRequest(
        position=SourcePosition("gnomon.mirror", "00000000-0000-0000-0000-000000000001", 0, 0),
        request_id=request_id,
        body=body,
        request_hash="0" * 32,
        mirrored_at=moment,
        ingested_at=moment,
        endpoint=endpoint,
    )
