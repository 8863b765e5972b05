"""The shapes of an OpenAI-compatible answer, decoded fast where they are sound and leniently where not.

The fast way is msgspec on typed structures. One odd field must not cost the whole answer, so what does
not fit goes through `json` and is taken field by field (`ingest.wire_lenient`); what cannot be used is
dropped with a note.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ingest.alternative import Alternative, TokenId

Count = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
"""A number of tokens, as the store can hold it."""


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


class Listed(msgspec.Struct, gc=False):
    """An alternative as a server wrote it. `logprob` None: impossible."""

    token: str = ""
    logprob: float | None = None
    bytes: list[int] | None = None
    id: TokenId | None = None


class Entry(msgspec.Struct, gc=False):
    """One token of the chat shape, its list ready for use."""

    token: str = ""
    logprob: float | None = None
    bytes: list[int] | None = None
    id: TokenId | None = None
    top_logprobs: tuple[Alternative, ...] | None = None


class Logprobs(msgspec.Struct):
    """`content` is the chat shape, its entries not yet decoded; the other three are the legacy shape."""

    content: list[msgspec.Raw] | None = None
    tokens: list[str | None] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[msgspec.Raw] | None = None


class Choice(msgspec.Struct):
    """One choice, whole or a piece. `token_ids` is vLLM's `return_token_ids`."""

    index: int | None = None
    message: Message | None = None
    delta: Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: Logprobs | None = None
    token_ids: list[int] | None = None
    error: Any = None


class Usage(msgspec.Struct):
    """Token counts as the server reports them."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None


class Chunk(msgspec.Struct):
    """One JSON body, or the data of one streamed event. `choices` None: the key was not there.

    `timings` is llama.cpp's, `metrics` vLLM's: either may say that tokens were drafted.
    """

    choices: list[Choice] | None = None
    usage: Usage | None = None
    model: str | None = None
    error: Any = None
    object: str | None = None
    message: Any = None
    timings: Any = None
    metrics: Any = None


class _EntryLogprobs(msgspec.Struct):
    content: list[Entry] | None = None
    tokens: None = None


class _EntryChoice(msgspec.Struct):
    index: int | None = None
    message: Message | None = None
    delta: Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: _EntryLogprobs | None = None
    token_ids: list[int] | None = None
    error: Any = None


class _EntryChunk(msgspec.Struct):
    choices: list[_EntryChoice]
    usage: Usage | None = None
    model: str | None = None
    error: Any = None
    object: str | None = None
    message: Any = None
    timings: Any = None
    metrics: Any = None


class LiftedLogprobs(msgspec.Struct):
    """Logprobs whose array was cut out (`ingest.lift`); `content` is the mark left in its place."""

    content: str
    tokens: None = None


class _LiftedChoice(msgspec.Struct):
    logprobs: LiftedLogprobs
    index: int | None = None
    message: Message | None = None
    delta: Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    error: Any = None


class _LiftedChunk(msgspec.Struct):
    choices: list[_LiftedChoice]
    usage: Usage | None = None
    model: str | None = None
    error: Any = None
    object: str | None = None
    message: Any = None
    timings: Any = None
    metrics: Any = None


AnyChunk = Chunk | _EntryChunk | _LiftedChunk
AnyChoice = Choice | _EntryChoice | _LiftedChoice
AnyLogprobs = Logprobs | _EntryLogprobs

MAX_FAST_BYTES = 8 * 1024 * 1024
"""A larger body gets its logprob entries decoded one by one, so that those beyond the limit take no room."""

_ENTRY_DECODER = msgspec.json.Decoder(_EntryChunk)
_LIFTED_DECODER = msgspec.json.Decoder(_LiftedChunk)
_CHUNK_DECODER = msgspec.json.Decoder(Chunk)
_NOT_SOUND = (msgspec.MsgspecError, ValueError, RecursionError)


def decode_fast(data: bytes, *, wants_logprobs: bool) -> AnyChunk | None:
    """Decode one OpenAI chunk, or return None if it is no sound one: another dialect, or an odd field."""
    if wants_logprobs and len(data) <= MAX_FAST_BYTES:
        try:
            return _ENTRY_DECODER.decode(data)
        except _NOT_SOUND:
            pass
    try:
        return _CHUNK_DECODER.decode(data)
    except _NOT_SOUND:
        return None


def decode_lifted(rest: bytes, mark: str) -> AnyChunk | None:
    """Decode what is left of an OpenAI chunk of one choice without its array of logprobs.

    Returns None if it is no sound one, or if the array did not stand where logprobs stand.
    """
    try:
        chunk = _LIFTED_DECODER.decode(rest)
    except _NOT_SOUND:
        return None
    if len(chunk.choices) != 1 or chunk.choices[0].logprobs.content != mark:
        return None
    return chunk
