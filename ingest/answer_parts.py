"""Putting an answer together from its pieces: text, reasoning, tool calls, tokens, usage."""

from __future__ import annotations

import json
from typing import Any

from ingest.logprobs import read_tokens
from ingest.observation import MAX_LOGPROB_TOKENS, Failure, Observation, Token, ToolCall
from ingest.tolerant_json import clean_text
from ingest.wire import Choice, Chunk, Logprobs, Message, ToolDelta


class _Call:
    """A tool call in the making."""

    def __init__(self) -> None:
        self.name = ""
        self.id: str | None = None
        self.arguments: list[str] = []


class Assembler:
    """Add chunks in order, then take the observation. Only choice 0 is read: replay asks for one.

    `notes` is an ordered set of codes that every reader below writes into.
    """

    def __init__(self, *, asked: int | None) -> None:
        self.notes: dict[str, None] = {}
        self.finish_reason: str | None = None
        self.has_choices = False
        self.has_content = False
        self._asked = asked
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._tokens: list[Token] = []
        self._prompt_tokens: int | None = None
        self._completion_tokens: int | None = None
        self._model: str | None = None

    def note(self, code: str) -> None:
        """Record a code once."""
        self.notes[code] = None

    def add(self, chunk: Chunk) -> None:
        """Take one chunk: a whole answer, or one event of a stream."""
        if chunk.model and self._model is None:
            self._model = chunk.model
        if chunk.usage is not None:
            # Usage may come in every chunk, growing; the last word counts, and null unsays nothing.
            if chunk.usage.prompt_tokens is not None:
                self._prompt_tokens = chunk.usage.prompt_tokens
            if chunk.usage.completion_tokens is not None:
                self._completion_tokens = chunk.usage.completion_tokens
        for choice in chunk.choices or ():
            if not choice.index:
                self._add_choice(choice)

    def observation(self, *, failure: Failure | None, has_done: bool) -> Observation:
        """Return what has come together so far."""
        return Observation(
            text=self._clean(self._text),
            reasoning=self._clean(self._reasoning),
            tool_calls=tuple(
                ToolCall(clean_text(call.name, self.notes), self._clean(call.arguments), call.id)
                for call in self._calls
            ),
            tokens=tuple(self._tokens),
            finish_reason=self.finish_reason,
            prompt_tokens=self._prompt_tokens,
            completion_tokens=self._completion_tokens,
            failure=failure,
            reported_model=self._model,
            has_done=has_done,
            # Last, since the lines above may still add to them.
            notes=tuple(self.notes),
        )

    def _clean(self, parts: list[str]) -> str:
        return clean_text("".join(parts), self.notes)

    def _add_choice(self, choice: Choice) -> None:
        self.has_choices = True
        if choice.finish_reason:
            # "" and null mean "not finished"; a later null must not erase a reason.
            self.finish_reason = choice.finish_reason
        if choice.text:
            self._text.append(choice.text)
        if choice.delta is not None:
            self._add_message(choice.delta, is_whole=False)
        elif choice.message is not None:
            self._add_message(choice.message, is_whole=True)
        self.has_content = self.has_content or bool(self._text or self._reasoning or self._calls)
        if choice.logprobs is not None:
            self._add_logprobs(choice.logprobs)

    def _add_message(self, message: Message, *, is_whole: bool) -> None:
        content = message.content
        if isinstance(content, list):
            content = "".join(_part_text(part) for part in content)
        if content:
            self._text.append(content)
        elif message.refusal:
            self._text.append(message.refusal)
            self.note("refusal")
        reasoning = message.reasoning_content or message.reasoning
        if reasoning:
            self._reasoning.append(reasoning)
        for delta in message.tool_calls or ():
            self._add_tool_call(delta, self._open() if is_whole else self._call_of(delta))
        if message.function_call is not None:
            delta = ToolDelta(index=0, function=message.function_call)
            self._add_tool_call(delta, self._call_of(delta))

    def _add_tool_call(self, delta: ToolDelta, call: _Call) -> None:
        if delta.id:
            call.id = call.id or delta.id
        function = delta.function
        if function is None:
            return
        if function.name and not call.name:
            call.name = function.name
        arguments = function.arguments
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif arguments is not None:
            self.note("arguments_object")
            try:
                call.arguments.append(json.dumps(arguments, ensure_ascii=False))
            except RecursionError:
                self.note("arguments_too_deep")

    def _call_of(self, delta: ToolDelta) -> _Call:
        """Find the call that a delta continues, or open a new one.

        Some servers repeat index 0 for every call and tell them apart by id; some send no index at all.
        """
        if delta.index is None:
            self.note("tool_call_without_index")
            starts = bool(delta.function is not None and delta.function.name)
            known = next((call for call in self._calls if delta.id and call.id == delta.id), None)
            if known is not None:
                return known
            if self._calls and not starts and not delta.id:
                return self._calls[-1]
            return self._open()
        call = self._by_index.get(delta.index)
        is_other = (
            call is not None
            and bool(delta.id)
            and call.id is not None
            and delta.id != call.id
            and delta.function is not None
            and bool(delta.function.name)
        )
        if call is None or is_other:
            if is_other:
                self.note("tool_call_index_repeated")
            call = self._by_index[delta.index] = self._open()
        return call

    def _open(self) -> _Call:
        call = _Call()
        self._calls.append(call)
        return call

    def _add_logprobs(self, logprobs: Logprobs) -> None:
        room = MAX_LOGPROB_TOKENS - len(self._tokens)
        tokens, given = read_tokens(logprobs, asked=self._asked, room=room, notes=self.notes)
        self._tokens.extend(tokens)
        if given > room:
            self.note("logprobs_truncated")


def _part_text(part: Any) -> str:
    """Return the text of one content part: `{"type": "text", "text": "..."}` or a bare string."""
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""
