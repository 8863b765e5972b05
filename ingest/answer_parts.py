"""Putting an answer together from its pieces: text, reasoning, tool calls, tokens, usage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ingest.drafts import SPECULATIVE, says_drafted
from ingest.gathered import GatheredTokens
from ingest.http_errors import words_of
from ingest.observation import Failure, FailureKind, Observation
from ingest.tokens import Token
from ingest.tolerant_json import clean_text
from ingest.tool_calls import ToolCalls
from ingest.wire import AnyChoice, AnyChunk, Entry, Message, ToolDelta, Usage


class Assembler:
    """Add pieces in order, then take the observation. Only one choice is read: replay asks for one.

    `notes` is an ordered set of codes that every reader below writes into. The `add_...` methods are what
    the dialects use.
    """

    def __init__(self, *, asked: int | None) -> None:
        self.notes: dict[str, None] = {}
        self.finish_reason: str | None = None
        self.failure: Failure | None = None
        self.has_choices = False
        """Whether anything with the shape of an answer came."""
        self.has_empty_choices = False
        self.is_partial = False
        """Whether the server says that more is to come."""
        self.has_content = False
        self.asked = asked
        self.calls = ToolCalls(self.notes)
        self.tokens = GatheredTokens(asked=asked, notes=self.notes)
        self.model: str | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._usage = Usage()
        self._index: int | None = None
        self._has_deltas = False

    def note(self, code: str) -> None:
        """Record a code once."""
        self.notes[code] = None

    @property
    def room(self) -> int:
        """How many more tokens are kept with their logprobs."""
        return self.tokens.room

    def add_text(self, text: str | None) -> None:
        """Add a piece of the answer."""
        if text:
            self._text.append(text)
            self.has_content = True

    def replace_text(self, text: str) -> None:
        """Take a text for all of the answer so far."""
        self._text = [text]
        self.has_content = self.has_content or bool(text)

    def restart(self) -> None:
        """Forget text, reasoning, calls and tokens: the whole answer comes once more."""
        self._text, self._reasoning = [], []
        self.tokens.restart()
        self.calls = ToolCalls(self.notes)

    def add_reasoning(self, text: str | None) -> None:
        """Add a piece of the reasoning."""
        if text:
            self._reasoning.append(text)
            self.has_content = True

    def add_usage(self, prompt: int | None, completion: int | None) -> None:
        """Take token counts, which may grow from chunk to chunk; null unsays nothing."""
        if prompt is not None:
            self._usage.prompt_tokens = prompt
        if completion is not None:
            self._usage.completion_tokens = completion

    def add_token(self, token: Token) -> None:
        """Keep a token if there is room."""
        self.tokens.add([token])

    def read_entry(self, entry: Entry | msgspec.Raw) -> Token:
        """Read one token in the chat shape."""
        return self.tokens.read_entry(entry)

    def add_entries(self, entries: Sequence[Entry | msgspec.Raw]) -> None:
        """Keep tokens in the chat shape, decoded or not."""
        self.tokens.add_entries(entries)

    def add_lifted(self) -> None:
        """Keep tokens that the scanner has."""
        self.tokens.add_lifted()

    def add_message(self, message: Message, *, is_whole: bool) -> None:
        """Take a message, or the delta of one."""
        content = message.content
        if isinstance(content, list):
            self._add_parts(content)
            content = None
        if content:
            self.add_text(content)
        elif message.refusal:
            self.add_text(message.refusal)
            self.note("refusal")
        self.add_reasoning(message.reasoning_content or message.reasoning)
        for delta in message.tool_calls or ():
            if is_whole:
                self.calls.add_whole(delta)
            else:
                self.calls.add_piece(delta)
        if message.function_call is not None:
            self.calls.add_piece(ToolDelta(index=0, function=message.function_call))
        self.has_content = self.has_content or len(self.calls) > 0

    def add(self, chunk: AnyChunk) -> None:
        """Take one OpenAI chunk: a whole answer, or one event of a stream."""
        if chunk.model and self.model is None:
            self.model = chunk.model
        if chunk.usage is not None:
            self.add_usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
        if says_drafted(chunk.timings, chunk.metrics):
            self.note(SPECULATIVE)
        self.has_empty_choices = self.has_empty_choices or chunk.choices == []
        chosen: AnyChoice | None = None
        for choice in chunk.choices or ():
            if (choice.index or 0) == (self._index or 0):
                if chosen is not None and (choice.message is not None or choice.text):
                    self.note("choices_repeated")
                    break
                if chosen is not None:
                    self._add_choice(choice)
                else:
                    chosen = choice
                    self._index = choice.index or 0
                    self._add_choice(choice)
        if chosen is None and chunk.choices and self._index is None:
            self._index = chunk.choices[0].index
            self.note("choice_index")
            self._add_choice(chunk.choices[0])

    def observation(self, *, failure: Failure | None, has_done: bool) -> Observation:
        """Return what has come together so far."""
        text = self._clean(self._text)
        reasoning = self._clean(self._reasoning)
        calls = self.calls.calls()
        tokens = self.tokens.finish(text, reasoning)
        model = None if self.model is None else clean_text(self.model, self.notes)
        reason = None if self.finish_reason is None else clean_text(self.finish_reason, self.notes)
        return Observation(
            text=text,
            reasoning=reasoning,
            tool_calls=calls,
            tokens=tokens,
            finish_reason=reason,
            prompt_tokens=self._usage.prompt_tokens,
            completion_tokens=self._usage.completion_tokens,
            failure=failure,
            reported_model=model,
            has_done=has_done,
            # Last, since the lines above may still add to them.
            notes=tuple(self.notes),
        )

    def _clean(self, parts: list[str]) -> str:
        return clean_text("".join(parts), self.notes)

    def _add_choice(self, choice: AnyChoice) -> None:
        self.has_choices = True
        if choice.error and self.failure is None:
            self.failure = Failure(FailureKind.ERROR_IN_STREAM, words_of(choice.error), 200)
        if choice.finish_reason:
            # "" and null mean "not finished"; a later null must not erase a reason.
            self.finish_reason = choice.finish_reason
        self.add_text(choice.text)
        if choice.delta is not None:
            self._has_deltas = True
            self.add_message(choice.delta, is_whole=False)
        elif choice.message is not None:
            if self._has_deltas and self.has_content:
                self.note("message_after_deltas")
            else:
                self.add_message(choice.message, is_whole=True)
        if choice.logprobs is not None:
            piece = choice.text if choice.delta is None else choice.delta.content
            piece = piece if isinstance(piece, str) else None
            self.tokens.add_logprobs(choice.logprobs, choice.token_ids, piece)

    def _add_parts(self, parts: list[Any]) -> None:
        for part in parts:
            if isinstance(part, str):
                self.add_text(part)
            elif isinstance(part, dict):
                text = part.get("text")
                thinking = part.get("thinking")
                if isinstance(text, str):
                    self.add_text(text)
                elif isinstance(thinking, str):
                    self.add_reasoning(thinking)
                elif isinstance(thinking, list):  # Mistral: a list of text parts
                    texts = [item.get("text") for item in thinking if isinstance(item, dict)]
                    self.add_reasoning("".join(text for text in texts if isinstance(text, str)))
