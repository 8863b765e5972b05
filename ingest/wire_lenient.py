"""An OpenAI chunk with odd fields, taken field by field from decoded JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from ingest.notes import odd
from ingest.wire import Choice, Chunk, Logprobs, Message, ToolDelta, ToolFunction, Usage

MAX_COUNT = 2**32 - 1


def lenient_chunk(value: dict[str, Any], notes: dict[str, None]) -> Chunk:
    """Take what can be used of a decoded chunk; each odd field costs itself and a note."""
    choices = value.get("choices")
    if isinstance(choices, dict):
        choices = [choices]
    return Chunk(
        choices=[_choice(item, notes) for item in choices if isinstance(item, dict)]
        if isinstance(choices, list)
        else None,
        usage=lenient_usage(value.get("usage"), notes),
        model=text_of(value, "model", notes),
        error=value.get("error"),
        object=text_of(value, "object", notes),
        message=value.get("message"),
        timings=value.get("timings"),
        metrics=value.get("metrics"),
    )


def lenient_usage(value: object, notes: dict[str, None]) -> Usage | None:
    """Take token counts from a decoded `usage`."""
    if not isinstance(value, dict):
        return None
    return Usage(count_of(value.get("prompt_tokens"), notes), count_of(value.get("completion_tokens"), notes))


def lenient_message(value: object, notes: dict[str, None]) -> Message | None:
    """Take a decoded `message` or `delta`; a bare string is its content."""
    if isinstance(value, str):
        return Message(content=value)
    if not isinstance(value, dict):
        return None
    content = value.get("content")
    if isinstance(content, dict):
        content = [content]
    calls = value.get("tool_calls")
    if isinstance(calls, dict):
        calls = [calls]
    return Message(
        content=content if isinstance(content, list) else text_of(value, "content", notes),
        reasoning=text_of(value, "reasoning", notes),
        reasoning_content=text_of(value, "reasoning_content", notes),
        refusal=text_of(value, "refusal", notes),
        tool_calls=[_tool_delta(item, notes) for item in calls if isinstance(item, dict)]
        if isinstance(calls, list)
        else None,
        function_call=_function(value.get("function_call"), notes),
    )


def _choice(value: dict[str, Any], notes: dict[str, None]) -> Choice:
    ids = value.get("token_ids")
    return Choice(
        index=as_int(value.get("index")),
        message=lenient_message(value.get("message"), notes),
        delta=lenient_message(value.get("delta"), notes),
        text=text_of(value, "text", notes),
        finish_reason=text_of(value, "finish_reason", notes),
        logprobs=_logprobs(value.get("logprobs"), notes),
        token_ids=[-1 if (number := as_int(item)) is None else number for item in ids]
        if isinstance(ids, list)
        else None,
        error=value.get("error"),
    )


def _tool_delta(value: dict[str, Any], notes: dict[str, None]) -> ToolDelta:
    function = value.get("function")
    if not isinstance(function, dict) and ("name" in value or "arguments" in value):
        function = value  # some servers leave the wrapper out
    return ToolDelta(
        index=as_int(value.get("index")),
        id=text_of(value, "id", notes),
        function=_function(function, notes),
    )


def _function(value: object, notes: dict[str, None]) -> ToolFunction | None:
    if not isinstance(value, dict):
        return None
    return ToolFunction(text_of(value, "name", notes), value.get("arguments"))


def _logprobs(value: object, notes: dict[str, None]) -> Logprobs | None:
    if isinstance(value, list):
        value = {"content": value}
    if not isinstance(value, dict):
        return None
    content, tokens = value.get("content"), value.get("tokens")
    given, top = value.get("token_logprobs"), value.get("top_logprobs")
    return Logprobs(
        # Encoded again so that one reader serves both ways; NaN survives as the literal NaN.
        content=[encoded(item) for item in content] if isinstance(content, list) else None,
        tokens=[item if isinstance(item, str) else None for item in tokens]
        if isinstance(tokens, list)
        else None,
        token_logprobs=[as_float(item) for item in given] if isinstance(given, list) else None,
        top_logprobs=[encoded(item) for item in top] if isinstance(top, list) else None,
    )


def encoded(item: object) -> msgspec.Raw:
    """Write a decoded value as JSON again; what is nested too deeply becomes null."""
    try:
        return msgspec.Raw(json.dumps(item).encode())
    except RecursionError:
        return msgspec.Raw(b"null")


def as_int(value: object) -> int | None:
    """Take an integer of at most 64 bits, also written as 3.0 or "3"; anything else is None."""
    if isinstance(value, bool):
        return None
    if not isinstance(value, int):
        try:
            number = float(value) if isinstance(value, (float, str)) else None
        except ValueError:
            return None
        if number is None or not number.is_integer():
            return None
        value = int(number)
    return value if -(2**63) <= value < 2**63 else None


def as_float(value: object) -> float | None:
    """Take a number, also written as a string such as "-inf" or "NaN"; anything else is None.

    Plus infinity, which no log-probability and no probability can be, becomes NaN.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return math.nan if number == math.inf else number


def count_of(value: object, notes: dict[str, None]) -> int | None:
    """Take a number of tokens; what cannot be one is None, with the code `usage_odd`."""
    number = as_int(value)
    if number is not None and 0 <= number <= MAX_COUNT:
        return number
    if value is not None:
        notes["usage_odd"] = None
    return None


def text_of(value: dict[str, Any], key: str, notes: dict[str, None]) -> str | None:
    """Take a text; anything else is None, with a code."""
    item = value.get(key)
    if item is None or isinstance(item, str):
        return item
    notes[odd(key)] = None
    return None
