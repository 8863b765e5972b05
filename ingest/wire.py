"""The shapes of an OpenAI-compatible answer, decoded fast where they are sound and leniently where not.

The fast way is msgspec on typed structures. One odd field must not cost the whole answer, so what does
not fit goes through `json` and is taken field by field; what cannot be used is dropped with a note.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ingest import tolerant_json
from ingest.errors import DeadLetterError


class ToolFunction(msgspec.Struct):
    """Name and arguments of a tool call, or a piece of them."""

    name: str | None = None
    arguments: Any = None


class ToolDelta(msgspec.Struct):
    """One tool call or a piece of one."""

    index: int | None = None
    id: str | None = None
    function: ToolFunction | None = None


class Message(msgspec.Struct):
    """`message` of a whole answer or `delta` of a streamed one."""

    content: str | list[Any] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolDelta] | None = None
    function_call: ToolFunction | None = None


class Logprobs(msgspec.Struct):
    """`content` is the chat shape, its entries not yet decoded; the other three are the legacy shape."""

    content: list[msgspec.Raw] | None = None
    tokens: list[str | None] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float | None] | None] | None = None


class Choice(msgspec.Struct):
    """One choice, whole or a piece."""

    index: int | None = None
    message: Message | None = None
    delta: Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: Logprobs | None = None


class Usage(msgspec.Struct):
    """Token counts as the server reports them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Chunk(msgspec.Struct):
    """One JSON body, or the data of one streamed event. `choices` None: the key was not there."""

    choices: list[Choice] | None = None
    usage: Usage | None = None
    model: str | None = None
    error: Any = None
    object: str | None = None
    message: Any = None


_CHUNK_DECODER = msgspec.json.Decoder(Chunk)


def decode_chunk(data: bytes, notes: dict[str, None]) -> Chunk:
    """Decode one chunk. Raises DeadLetterError (`invalid_json`, `not_an_object`)."""
    try:
        return _CHUNK_DECODER.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = tolerant_json.loads(data, notes)
    if not isinstance(value, dict):
        raise DeadLetterError("not_an_object", f"expected a JSON object, got {type(value).__name__}")
    return _chunk(value, notes)


def _chunk(value: dict[str, Any], notes: dict[str, None]) -> Chunk:
    choices = value.get("choices")
    usage = value.get("usage")
    return Chunk(
        choices=[_choice(item, notes) for item in choices if isinstance(item, dict)]
        if isinstance(choices, list)
        else None,
        usage=Usage(as_int(usage.get("prompt_tokens")), as_int(usage.get("completion_tokens")))
        if isinstance(usage, dict)
        else None,
        model=_text(value, "model", notes),
        error=value.get("error"),
        object=_text(value, "object", notes),
        message=value.get("message"),
    )


def _choice(value: dict[str, Any], notes: dict[str, None]) -> Choice:
    return Choice(
        index=as_int(value.get("index")),
        message=_message(value.get("message"), notes),
        delta=_message(value.get("delta"), notes),
        text=_text(value, "text", notes),
        finish_reason=_text(value, "finish_reason", notes),
        logprobs=_logprobs(value.get("logprobs"), notes),
    )


def _message(value: object, notes: dict[str, None]) -> Message | None:
    if not isinstance(value, dict):
        return None
    content = value.get("content")
    calls = value.get("tool_calls")
    return Message(
        content=content if isinstance(content, list) else _text(value, "content", notes),
        reasoning=_text(value, "reasoning", notes),
        reasoning_content=_text(value, "reasoning_content", notes),
        refusal=_text(value, "refusal", notes),
        tool_calls=[_tool_delta(item, notes) for item in calls if isinstance(item, dict)]
        if isinstance(calls, list)
        else None,
        function_call=_function(value.get("function_call"), notes),
    )


def _tool_delta(value: dict[str, Any], notes: dict[str, None]) -> ToolDelta:
    return ToolDelta(
        index=as_int(value.get("index")),
        id=_text(value, "id", notes),
        function=_function(value.get("function"), notes),
    )


def _function(value: object, notes: dict[str, None]) -> ToolFunction | None:
    if not isinstance(value, dict):
        return None
    return ToolFunction(_text(value, "name", notes), value.get("arguments"))


def _logprobs(value: object, notes: dict[str, None]) -> Logprobs | None:
    if not isinstance(value, dict):
        return None
    content, tokens = value.get("content"), value.get("tokens")
    given, top = value.get("token_logprobs"), value.get("top_logprobs")
    return Logprobs(
        # Encoded again so that one reader serves both ways; NaN survives as the literal NaN.
        content=[msgspec.Raw(_encoded(item)) for item in content] if isinstance(content, list) else None,
        tokens=[item if isinstance(item, str) else None for item in tokens]
        if isinstance(tokens, list)
        else None,
        token_logprobs=[as_float(item) for item in given] if isinstance(given, list) else None,
        top_logprobs=[
            {key: as_float(number) for key, number in item.items()} if isinstance(item, dict) else None
            for item in top
        ]
        if isinstance(top, list)
        else None,
    )


def _encoded(item: object) -> bytes:
    try:
        return json.dumps(item).encode()
    except RecursionError:
        return b"null"


def as_int(value: object) -> int | None:
    """Take an integer, also written as 3.0 or "3"; anything else is None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    try:
        number = float(value) if isinstance(value, (float, str)) else None
    except ValueError:
        return None
    return int(number) if number is not None and number.is_integer() else None


def as_float(value: object) -> float | None:
    """Take a number, also written as a string such as "-inf" or "NaN"; anything else is None."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _text(value: dict[str, Any], key: str, notes: dict[str, None]) -> str | None:
    item = value.get(key)
    if item is None or isinstance(item, str):
        return item
    notes[f"odd_{key}"] = None
    return None
