"""One Kafka record to one mirrored request, whichever of the four formats it is in."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from ingest.decode_http import decode_bare, decode_goreplay, is_bare, is_goreplay
from ingest.decode_litellm import decode_litellm, is_litellm
from ingest.decode_native import decode_fast, decode_native
from ingest.decoded import Decoded, json_type, short_text
from ingest.errors import DeadLetterError
from ingest.json_reader import read_json, without_non_finite
from ingest.outcome import Skipped, SkipReason
from ingest.records import MirroredRequest, RawRecord
from ingest.request import request_hash

MAX_REQUEST_BYTES = 16 * 1024 * 1024
"""A larger record is skipped: its hash and size are kept, it is not decoded."""

CLOCK_TOLERANCE = timedelta(days=7)
DROPPED_TAG = "gnomon.dropped"
NON_FINITE_TAG = "gnomon.non_finite"


def oversize(record: RawRecord) -> Skipped | None:
    """The skip of a record over 16 MiB, its size and SHA-256 in the detail. Ask before `decode`."""
    value = record.value
    if value is None or len(value) <= MAX_REQUEST_BYTES:
        return None
    digest = hashlib.sha256(value).hexdigest()
    return Skipped(SkipReason.OVERSIZE, f"{len(value)} bytes, sha256 {digest}")


def decode(record: RawRecord, ingested_at: datetime) -> MirroredRequest:
    """Decode `record`; `ingested_at` is now, in UTC.

    Tolerated and told: lone surrogates become U+FFFD (`has_lone_surrogates`); an optional field of
    a wrong type is left out (tag `gnomon.dropped` names it); NaN and infinities become null in the
    request and their names in production's answer (tag `gnomon.non_finite`).

    Raises DeadLetterError, and nothing else, with one of the reasons `empty_value`,
    `invalid_utf8`, `invalid_json`, `too_deep`, `not_an_object`, `missing_field`, `wrong_type`,
    `unknown_schema`, `redacted`.
    """
    data = record.value
    if not data or data.isspace():
        what = "null" if data is None else f"{len(data)} bytes of nothing"
        raise DeadLetterError("empty_value", f"the value is {what}")
    decoded = decode_fast(data)
    if decoded is not None:
        return _mirrored(record, decoded, ingested_at, has_lone_surrogates=False)
    json = read_json(data)
    tree = json.value
    if not isinstance(tree, dict):
        raise DeadLetterError("not_an_object", f"the value is {json_type(tree)}, it must be an object")
    has_lone_surrogates = json.has_lone_surrogates
    if "schema" not in tree and is_goreplay(tree):
        decoded, has_inner = decode_goreplay(tree)
        has_lone_surrogates = has_lone_surrogates or has_inner
    else:
        decoded = _by_shape(tree, record)
    if json.has_non_finite:
        decoded = _finite(decoded)
    return _mirrored(record, decoded, ingested_at, has_lone_surrogates=has_lone_surrogates)


def clamp_time(timestamp_ms: int, ingested_at: datetime) -> tuple[datetime, bool]:
    """Kafka's time within 7 days of `ingested_at`, and whether it had to be clamped.

    A negative time is Kafka's word for none: `ingested_at` stands in.
    """
    if timestamp_ms < 0:
        return ingested_at, True
    now_ms = round(ingested_at.timestamp() * 1000)
    tolerance_ms = round(CLOCK_TOLERANCE.total_seconds() * 1000)
    if timestamp_ms > now_ms + tolerance_ms:
        return ingested_at + CLOCK_TOLERANCE, True
    if timestamp_ms < now_ms - tolerance_ms:
        return ingested_at - CLOCK_TOLERANCE, True
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=timestamp_ms), False


def _by_shape(tree: dict[str, Any], record: RawRecord) -> Decoded:
    if "schema" in tree:
        return decode_native(tree)
    if is_litellm(tree):
        return decode_litellm(tree)
    if is_bare(tree):
        return decode_bare(tree, record)
    keys = short_text(", ".join(tree)) or "none"
    raise DeadLetterError("missing_field", f"schema is missing, and the fields fit no known format: {keys}")


def _finite(decoded: Decoded) -> Decoded:
    production = decoded.production
    if production is not None:
        answer = without_non_finite(production.body, as_text=True)
        production = msgspec.structs.replace(production, body=answer)
    return msgspec.structs.replace(
        decoded,
        body=without_non_finite(decoded.body, as_text=False),
        production=production,
        tags=decoded.tags | {NON_FINITE_TAG: "true"},
    )


def _mirrored(
    record: RawRecord, decoded: Decoded, ingested_at: datetime, *, has_lone_surrogates: bool
) -> MirroredRequest:
    mirrored_at, is_clock_suspect = clamp_time(record.timestamp_ms, ingested_at)
    tags = decoded.tags
    if decoded.dropped:
        tags = tags | {DROPPED_TAG: ",".join(decoded.dropped)}
    return MirroredRequest(
        position=record.position,
        request_id=decoded.request_id,
        body=decoded.body,
        request_hash=request_hash(decoded.body),
        mirrored_at=mirrored_at,
        ingested_at=ingested_at,
        is_clock_suspect=is_clock_suspect,
        has_lone_surrogates=has_lone_surrogates,
        sent_at=decoded.sent_at,
        tenant=decoded.tenant,
        route=decoded.route,
        endpoint=decoded.endpoint,
        production=decoded.production,
        served_by=decoded.served_by,
        tags=tags,
        source_format=decoded.source_format,
    )
