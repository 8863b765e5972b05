"""One answer, object by object, whatever its dialect. Nothing in an answer raises an error here."""

from __future__ import annotations

from typing import Any

from ingest.answer_parts import Assembler
from ingest.dialects import Dialect, dialect_of
from ingest.dialects.llama_cpp import LlamaCppDialect, is_lifted
from ingest.errors import DeadLetterError
from ingest.fields import Fields, fields_if_sound, fields_of
from ingest.http_errors import message_in, words_of
from ingest.lift import MARK, frame_of, lift_chat, lift_native
from ingest.observation import Failure, FailureKind, Observation
from ingest.scan import Frame, Scanner
from ingest.tolerant_json import loads, loads_joined, quote_literals
from ingest.wire import AnyChunk, Chunk, decode_fast, decode_lifted
from ingest.wire_lenient import encoded, lenient_chunk

_SMALL = 16_384
_FRAMES = 8
"""So many frames are learned in a row from events of which none is followed by another of its frame."""

_ERROR_KEYS = ("error", "errors", "detail", "message", "msg")


class AnswerReader:
    """Takes the JSON texts of one answer in order and makes the observation of them."""

    def __init__(self, *, asked: int | None) -> None:
        self.assembler = Assembler(asked=asked)
        self.failure: Failure | None = None
        self._dialect: Dialect | None = None
        self._frame: Frame | None = None
        self._frames_left = _FRAMES

    def take(self, data: bytes, *, is_error: bool = False) -> bool:
        """Read one JSON text: a whole answer, or one event. Returns whether it is a JSON object or list.

        `is_error`: the server marks it as an error whatever it looks like.
        """
        if is_error:
            self._fail(message_in(data))
            return True
        if self._take_lifted(data):
            return True
        if self._dialect is not None:
            return self._take_fields(data)
        # Without choices it is another dialect, most likely: a long body is not read in vain.
        if len(data) > _SMALL and b'"choices"' not in data and self._take_fields(data):
            return True
        wants_logprobs = self.assembler.room > 0
        chunk = decode_fast(data, wants_logprobs=wants_logprobs)
        if chunk is None and (b"NaN" in data or b"Infinity" in data):
            chunk = decode_fast(quote_literals(data), wants_logprobs=wants_logprobs)
            if chunk is not None:
                self.assembler.note("json_literals")
        if chunk is not None and self._take_chunk(chunk):
            return True
        if chunk is None:
            try:
                value = loads(data, self.assembler.notes)
            except DeadLetterError:
                return self._take_joined(data)
            return self._take_value(value)
        return self._take_fields(data)

    def take_events(self, data: bytes, at: int) -> tuple[int, int]:
        """Take events of a stream that differ from the last one in nothing but text and logprobs.

        `data[at]` begins an event. Returns the place behind the last one taken, and how many there were.
        """
        frame = self._frame
        if frame is None or self._dialect is not None:
            return at, 0
        end = self.assembler.tokens.take_events(data, at, frame)
        if end == at:
            return at, 0
        self.assembler.add_text(frame.text)
        self._frames_left = _FRAMES
        return end, frame.state.events

    def observation(self, failure: Failure | None, *, has_done: bool) -> Observation:
        """Return what came together. A failure that the server reported goes before `failure`."""
        return self.assembler.observation(
            failure=self.failure or self.assembler.failure or failure, has_done=has_done
        )

    def _take_lifted(self, data: bytes) -> bool:
        """Take an answer whose logprobs are regular. False: nothing was taken, read it whole."""
        scanner = self.assembler.tokens.scanner
        if scanner is None or self.assembler.room <= 0:
            return False
        took = (self._dialect is None and self._take_lifted_chunk(data, scanner)) or (
            self._take_lifted_fields(data, scanner)
        )
        # What was lifted may belong to a choice or an answer that is passed over.
        scanner.rollback()
        return took

    def _take_lifted_chunk(self, data: bytes, scanner: Scanner) -> bool:
        rest = lift_chat(data, scanner)
        chunk = None if rest is None else decode_lifted(rest, MARK)
        if rest is None or chunk is None:
            return False
        known = scanner.count
        self._take_chunk(chunk)
        if scanner.count > known and self._frames_left and chunk.object != "chat.completion":
            self._frame = frame_of(rest)
            self._frames_left -= 1
        return True

    def _take_lifted_fields(self, data: bytes, scanner: Scanner) -> bool:
        """Take an answer of llama.cpp's own route."""
        dialect = self._dialect
        if dialect is not None and not isinstance(dialect, LlamaCppDialect):
            return False
        rest = lift_native(data, scanner)
        # NaN has a way of its own, and so has whatever might be an OpenAI chunk.
        if rest is None or b"NaN" in rest or b"Infinity" in rest:
            return False
        fields = fields_if_sound(rest, self.assembler.notes)
        if fields is None or not is_lifted(fields):
            return False
        if dialect is None:
            chunk = decode_fast(rest, wants_logprobs=False)
            if not (isinstance(chunk, Chunk) and chunk == _only_extras(chunk)):
                return False
            if not isinstance(dialect_of(fields), LlamaCppDialect):
                return False
            self._dialect = dialect = LlamaCppDialect()
        elif not dialect.recognises(fields):
            return False
        self._add_fields(dialect, fields)
        return True

    def _take_chunk(self, chunk: AnyChunk) -> bool:
        """Take an OpenAI chunk; False if it is none."""
        if chunk.error or chunk.object == "error":
            self._fail(words_of(chunk.error or chunk.message, "no message"))
            return True
        if chunk.choices is None and chunk.usage is None:
            return False
        if chunk.choices is None and not self.assembler.has_choices:
            return False
        self.assembler.add(chunk)
        return True

    def _take_value(self, value: Any) -> bool:
        if isinstance(value, list):
            objects = [item for item in value if isinstance(item, dict)]
            for item in objects:
                self._take_value(item)
            return bool(objects)
        if not isinstance(value, dict):
            return False
        if self._dialect is None and self._take_chunk(lenient_chunk(value, {})):
            # Once more for the notes, which an object of another dialect must not leave.
            lenient_chunk(value, self.assembler.notes)
            return True
        return self._take_fields(bytes(encoded(value)))

    def _take_joined(self, data: bytes) -> bool:
        try:
            values = loads_joined(data, self.assembler.notes)
        except DeadLetterError:
            return False
        objects = [value for value in values if isinstance(value, dict)]
        if len(objects) < 2:
            return False
        self.assembler.note("json_joined")
        for value in objects:
            self._take_value(value)
        return True

    def _take_fields(self, data: bytes) -> bool:
        # What a strict reader takes has no such literals.
        fields = fields_if_sound(data, self.assembler.notes)
        if fields is None:
            fields = fields_of(quote_literals(data), self.assembler.notes)
        if fields is None:
            return False
        if self._dialect is None:
            self._dialect = dialect_of(fields)
        known = self._dialect is not None and type(self._dialect).recognises(fields)
        if self._dialect is not None and known:
            self._add_fields(self._dialect, fields)
            return True
        if any(key in fields and not fields.is_null(key) for key in _ERROR_KEYS):
            self._fail(message_in(data))
        return True

    def _add_fields(self, dialect: Dialect, fields: Fields) -> None:
        dialect.add(fields, self.assembler)
        error = fields.value("error") if "error" in fields else None
        if error:
            self._fail(words_of(error, "no message"))

    def _fail(self, message: str) -> None:
        if self.failure is None:
            self.failure = Failure(FailureKind.ERROR_IN_STREAM, message, 200)


def _only_extras(chunk: Chunk) -> Chunk:
    """Return what is left of an answer of llama.cpp's own route if it is read as an OpenAI chunk."""
    return Chunk(model=chunk.model, timings=chunk.timings)
