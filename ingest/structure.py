"""Which structure a request asks its answer to have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

Kind = Literal["json_object", "json_schema"]

_SCANNED_CHARACTERS = 64 * 1024
_SCANNED_BRACES = 64
_SCHEMA_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_DECODER = json.JSONDecoder()
_BRACE = re.compile(r'\{\s*"')


class ExpectedStructure(msgspec.Struct, frozen=True):
    """What the answer must be.

    `kind` None: no JSON was asked for. `schema` is a JSON Schema; None with kind `json_object`,
    or where the schema given is no object. `is_enforced` says that the request asks the server to
    constrain the decoding; a schema that only stands in a prompt is not enforced. `source` names
    where it was found (`response_format`, `structured_outputs`, `guided_json`, `json_schema`,
    `format`, `system message`), empty if nowhere.
    """

    kind: Kind | None = None
    schema: dict[str, Any] | None = None
    is_enforced: bool = False
    source: str = ""


def expects_json(body: dict[str, Any]) -> ExpectedStructure:
    """The structure that the request asks for. Never raises, whatever the types in `body`.

    A schema in a system message is used where the request enforces none: with
    `response_format: {"type": "json_object"}` the result is that schema, unenforced.
    """
    enforced = list(_enforced(body))
    for structure in enforced:
        if structure.schema is not None:
            return structure
    schema = _schema_in_prompt(body)
    if schema is not None:
        return ExpectedStructure("json_schema", schema, is_enforced=False, source="system message")
    return enforced[0] if enforced else ExpectedStructure()


def _enforced(body: dict[str, Any]) -> Iterator[ExpectedStructure]:
    """What each field asks for: the standard's first, then vLLM's, llama.cpp's, Ollama's."""
    response_format = body.get("response_format")
    if isinstance(response_format, dict):
        kind = response_format.get("type")
        if kind == "json_schema":
            wrapped = response_format.get("json_schema")
            schema = wrapped.get("schema") if isinstance(wrapped, dict) else response_format.get("schema")
            yield _of("response_format", schema)
        elif kind == "json_object":
            yield _of("response_format", response_format.get("schema"))
    outputs = body.get("structured_outputs")
    if isinstance(outputs, dict):
        if outputs.get("json") is not None:
            yield _of("structured_outputs", outputs["json"])
        elif outputs.get("json_object") is True:
            yield _of("structured_outputs", None)
    for name in ("guided_json", "json_schema"):
        if body.get(name) is not None:
            yield _of(name, body[name])
    # Ollama's `format` is the word json or a schema.
    asked = body.get("format")
    if asked == "json" or isinstance(asked, dict):
        yield _of("format", asked if isinstance(asked, dict) else None)


def _of(source: str, schema: Any) -> ExpectedStructure:
    """`schema` may be an object or its JSON text; anything else asks for JSON and no more."""
    if isinstance(schema, str):
        schema = _parsed(schema)
    if isinstance(schema, dict):
        return ExpectedStructure("json_schema", schema, is_enforced=True, source=source)
    return ExpectedStructure("json_object", None, is_enforced=True, source=source)


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def _schema_in_prompt(body: dict[str, Any]) -> dict[str, Any] | None:
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("role") in ("system", "developer"):
            schema = _schema_in_text(_text_of(message.get("content"))[:_SCANNED_CHARACTERS])
            if schema is not None:
                return schema
    return None


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _schema_in_text(text: str) -> dict[str, Any] | None:
    """The first JSON object in `text` that is a JSON Schema.

    At most 64 braces are tried: each attempt may read to the end, and the text is not ours.
    """
    if '"properties"' not in text and '"$schema"' not in text:
        return None
    position = 0
    for _ in range(_SCANNED_BRACES):
        found = _BRACE.search(text, position)
        if found is None:
            return None
        try:
            value, position = _DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            position = found.start() + 1
            continue
        schema = _unwrapped(value)
        if schema is not None:
            return schema
    return None


def _unwrapped(value: Any) -> dict[str, Any] | None:
    """`value` if it is a schema, or the schema in it where it stands under a usual wrapper."""
    for candidate in (value, value.get("schema"), value.get("json_schema"), value.get("parameters")):
        if isinstance(candidate, dict) and _is_schema(candidate):
            return candidate
    return None


def _is_schema(value: dict[str, Any]) -> bool:
    if isinstance(value.get("$schema"), str):
        return True
    kind = value.get("type")
    return isinstance(kind, str) and kind in _SCHEMA_TYPES and isinstance(value.get("properties"), dict)
