"""Requests captured at the HTTP level: GoReplay's Kafka JSON, and bare bodies with Kafka headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingest.decoded import Decoded, Fields, from_unix, guess_endpoint, json_type, parse_time, short
from ingest.errors import DeadLetterError
from ingest.json_reader import read_json, without_non_finite
from ingest.records import RawRecord
from ingest.replay_header import REPLAY_OF, replay_of
from ingest.request import api_of

GOREPLAY_FORMAT = "goreplay"
BARE_FORMAT = "openai"

REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-correlation-id")
TENANT_HEADERS = ("x-tenant", "x-tenant-id", "openai-organization")
ROUTE_HEADERS = ("x-route",)
ENDPOINT_HEADERS = ("x-endpoint", ":path", "x-original-path")
SENT_AT_HEADERS = ("x-sent-at",)

_REQUEST = "1"


def is_goreplay(tree: dict[str, Any]) -> bool:
    """Whether an object is what GoReplay writes with `--output-kafka-json-format`."""
    return "Req_URL" in tree or ("Req_ID" in tree and "Req_Type" in tree)


def is_bare(tree: dict[str, Any]) -> bool:
    """Whether an object is an OpenAI request body by itself."""
    return guess_endpoint(tree) != ""


def decode_goreplay(tree: dict[str, Any]) -> tuple[Decoded, bool]:
    """Decode one message, and say whether its body held lone surrogates.

    A recorded response, and a body of an endpoint that is not replayed, gives an empty body: it
    will be skipped. Raises DeadLetterError `missing_field`, `wrong_type`, `invalid_json`,
    `not_an_object` or `too_deep`.
    """
    fields = Fields(tree)
    headers = _lower(fields.table("Req_Headers"))
    request_id = _first(headers, REQUEST_ID_HEADERS) or fields.required_text("Req_ID")
    kind = fields.text("Req_Type") or _REQUEST
    endpoint = fields.text("Req_URL") or "" if kind == _REQUEST else "goreplay:response"
    body: dict[str, Any] = {}
    has_lone_surrogates = False
    if api_of(endpoint) is not None and fields.text("Req_Method") != "OPTIONS":
        text = fields.required_text("Req_Body")
        json = read_json(text.encode("utf-8"), "Req_Body")
        value = without_non_finite(json.value, as_text=False) if json.has_non_finite else json.value
        if not isinstance(value, dict):
            raise DeadLetterError(
                "not_an_object", f"Req_Body is {json_type(value)}, it must be an object: {short(value)}"
            )
        body, has_lone_surrogates = value, json.has_lone_surrogates
    nanoseconds = fields.text("Req_Ts")
    sent_at = None
    if nanoseconds is not None:
        is_number = nanoseconds.isascii() and nanoseconds.isdigit() and len(nanoseconds) < 25
        sent_at = from_unix(int(nanoseconds) / 1e9) if is_number else None
        if sent_at is None:
            fields.drop("Req_Ts")
    decoded = Decoded(
        request_id=request_id,
        body=body,
        source_format=GOREPLAY_FORMAT,
        sent_at=sent_at,
        tenant=_first(headers, TENANT_HEADERS),
        route=_first(headers, ROUTE_HEADERS),
        endpoint=endpoint,
        dropped=tuple(fields.dropped),
    )
    return decoded, has_lone_surrogates


def decode_bare(tree: dict[str, Any], record: RawRecord) -> Decoded:
    """The value is the body; everything else comes from the Kafka headers.

    Without a request id in a header the record's position is the id, or the one that it had before it was
    sent again. The key is not used: it is often the tenant's, and equal ids count as duplicates.
    """
    headers = {name.lower(): value.decode("utf-8", "replace") for name, value in record.headers if value}
    fallback = headers.get(REPLAY_OF) or replay_of(record.position)
    sent = _first(headers, SENT_AT_HEADERS)
    sent_at = parse_time(sent) if sent else None
    return Decoded(
        request_id=_first(headers, REQUEST_ID_HEADERS) or fallback,
        body=tree,
        source_format=BARE_FORMAT,
        sent_at=sent_at,
        tenant=_first(headers, TENANT_HEADERS),
        route=_first(headers, ROUTE_HEADERS),
        endpoint=_first(headers, ENDPOINT_HEADERS) or guess_endpoint(tree),
        dropped=("x-sent-at",) if sent and sent_at is None else (),
    )


def _lower(fields: Fields | None) -> dict[str, str]:
    if fields is None:
        return {}
    return {name.lower(): value for name, value in fields.tree.items() if isinstance(value, str)}


def _first(headers: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((headers[name] for name in names if headers.get(name)), "")
