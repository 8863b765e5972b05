"""What a file is that was given as an answer and is none: a word for the person who gave it."""

from __future__ import annotations

from typing import Any

from ingest.errors import DeadLetterError
from ingest.tolerant_json import loads

_MAX_READ = 1 << 20


def hint_of(body: bytes) -> str | None:
    """Say what `body` looks like and what to do with it; None where nothing is known."""
    if not body.strip():
        return "save the body of the HTTP answer into it"
    if body.startswith(b"\x1f\x8b"):
        return "it is compressed (gzip): unpack it first, or ask with curl --compressed"
    if body.startswith(b"HTTP/"):
        return "it begins with the HTTP headers: save the body alone, with curl without -i"
    if b"\x00" in body[:4096] and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "it is a binary file"
    head = body[:_MAX_READ].lstrip()
    if head[:1] == b"<":
        return "it is a page of HTML or XML, as proxies send it, not the model's server"
    # A file of records or cases has one object a line.
    value = _object(head) or _object(head.split(b"\n", 1)[0])
    return None if value is None else _hint_of_object(value)


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = loads(data, {})
    except DeadLetterError:
        return None
    return value if isinstance(value, dict) else None


def _hint_of_object(value: dict[str, Any]) -> str | None:
    if "candidate" in value and "id" in value:
        return "it is a file of cases: read it with gnomon inspect --cases"
    if "request_id" in value or ("request" in value and "response" in value):
        return "it is a mirrored record: the answer is the body within its `response`"
    if "messages" in value or "prompt" in value:
        return "it is a request: give it with --request, beside the answer"
    if isinstance(value.get("data"), list):
        return "it is a list of models or embeddings, not an answer"
    return None
