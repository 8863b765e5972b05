"""The native envelope, `gnomon.mirror/1`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ingest.decoded import Decoded, Fields, as_tag, guess_endpoint, parse_time, short
from ingest.errors import DeadLetterError
from ingest.json_reader import refuse_deep
from ingest.records import ProductionAnswer, ServedBy

SCHEMA = "gnomon.mirror/1"


class Envelope(msgspec.Struct, frozen=True):
    """The envelope where every field has its documented type; most records are."""

    schema: Literal["gnomon.mirror/1"]
    request_id: str
    request: dict[str, Any]
    sent_at: str | None = None
    tenant: str | None = None
    route: str | None = None
    endpoint: str | None = None
    response: ProductionAnswer | None = None
    served_by: ServedBy | None = None
    tags: dict[str, str] | None = None


_DECODER = msgspec.json.Decoder(Envelope)


def decode_fast(data: bytes) -> Decoded | None:
    """Decode straight into typed structs; None where anything at all is unusual.

    Raises DeadLetterError `too_deep`.
    """
    if b"gnomon.mirror/" not in data:
        return None
    try:
        envelope = _DECODER.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    sent_at = None if envelope.sent_at is None else parse_time(envelope.sent_at)
    if not envelope.request_id or (envelope.sent_at is not None and sent_at is None):
        return None
    # As deep as they stand in the envelope.
    refuse_deep([envelope.request, [envelope.response and envelope.response.body]], data)
    return Decoded(
        request_id=envelope.request_id,
        body=envelope.request,
        source_format=SCHEMA,
        sent_at=sent_at,
        tenant=envelope.tenant or "",
        route=envelope.route or "",
        endpoint=envelope.endpoint or guess_endpoint(envelope.request),
        production=envelope.response,
        served_by=envelope.served_by or ServedBy(),
        tags=envelope.tags or {},
    )


def decode_native(tree: dict[str, Any]) -> Decoded:
    """Decode field by field: an optional field of a wrong type is left out and named.

    Raises DeadLetterError `unknown_schema`, `missing_field` or `wrong_type`.
    """
    fields = Fields(tree)
    schema = fields.required_text("schema")
    if schema != SCHEMA:
        raise DeadLetterError("unknown_schema", f"schema is {short(schema)}; {SCHEMA} is known here")
    request_id = fields.required_text("request_id")
    body = fields.required_object("request")
    return Decoded(
        request_id=request_id,
        body=body,
        source_format=SCHEMA,
        sent_at=fields.time("sent_at"),
        tenant=fields.text("tenant") or "",
        route=fields.text("route") or "",
        endpoint=fields.text("endpoint") or guess_endpoint(body),
        production=_production(fields.table("response")),
        served_by=_served_by(fields.table("served_by")),
        tags=_tags(fields.table("tags")),
        dropped=tuple(fields.dropped),
    )


def _production(fields: Fields | None) -> ProductionAnswer | None:
    if fields is None:
        return None
    return ProductionAnswer(
        status=fields.whole("status"),
        content_type=fields.text("content_type"),
        body=fields.tree.get("body"),
        latency_ms=fields.number("latency_ms"),
    )


def _served_by(fields: Fields | None) -> ServedBy:
    if fields is None:
        return ServedBy()
    return ServedBy(**{name: fields.text(name) for name in ServedBy.__struct_fields__})


def _tags(fields: Fields | None) -> dict[str, str]:
    tags = {}
    for name, value in fields.tree.items() if fields is not None else ():
        tag = as_tag(value)
        if tag is not None:
            tags[name] = tag
        elif fields is not None and value is not None:
            fields.drop(name)
    return tags
