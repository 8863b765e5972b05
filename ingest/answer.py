"""From an HTTP answer, whole or streamed, to an Observation. Nothing in an answer raises an error here.

Notes that this module adds: `lone_surrogate`, `invalid_utf8`, `logprobs_truncated`,
`unreadable_event`, `arguments_object`, `tool_call_without_index`, `no_choices`, `lost_after_finish`,
`odd_<field>`; `ingest.logprobs` lists its own.
"""

from __future__ import annotations

from ingest.answer_parts import Assembler
from ingest.errors import DeadLetterError
from ingest.http_errors import failure_of_status, message_in
from ingest.observation import Failure, FailureKind, Observation
from ingest.sse import SseEvent, SseParser
from ingest.wire import decode_chunk


class StreamReader:
    """Read one event stream: `feed` bytes as they arrive, then `finish` once.

    `asked` is the number of alternatives that the request asked for, None if it is not known. Memory
    grows with the text and with the first MAX_LOGPROB_TOKENS tokens only.
    """

    def __init__(self, *, asked: int | None = None) -> None:
        self._parser = SseParser()
        self._assembler = Assembler(asked=asked)
        self._failure: Failure | None = None
        self._is_unreadable = False
        self.is_done = False
        """Whether the end mark `[DONE]` was seen: nothing is expected after it."""
        self.events = 0
        """How many events came; comments (keep-alive) do not count."""

    @property
    def has_content(self) -> bool:
        """Whether a first piece of text, reasoning or tool call has come."""
        return self._assembler.has_content

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body."""
        for event in self._parser.feed(chunk):
            self._take(event)

    def finish(self, *, broken: str | None = None) -> Observation:
        """End the stream. `broken` says how the connection was lost, None for an orderly end."""
        last = self._parser.close()
        if last is not None and broken is None:
            self._take(last)
        assembler = self._assembler
        failure = self._failure
        if failure is None and not self.is_done:
            if assembler.finish_reason is None:
                failure = Failure(
                    FailureKind.CUT_STREAM, broken or "the stream ended without a finish reason and [DONE]"
                )
            elif broken is not None:
                assembler.note("lost_after_finish")
        if failure is None and self._is_unreadable:
            failure = Failure(FailureKind.UNREADABLE, "an event of the stream is no JSON object")
        if failure is None and not assembler.has_choices:
            failure = Failure(FailureKind.UNREADABLE, "the stream holds no choices")
        return assembler.observation(failure=failure, has_done=self.is_done)

    def _take(self, event: SseEvent) -> None:
        if self.is_done:
            return
        self.events += 1
        data = event.data.strip()
        if data == b"[DONE]":
            self.is_done = True
            return
        if not data:
            return
        try:
            chunk = decode_chunk(data, self._assembler.notes)
        except DeadLetterError:
            self._assembler.note("unreadable_event")
            self._is_unreadable = True
            return
        if chunk.error or chunk.object == "error" or event.event == "error":
            if self._failure is None:
                self._failure = Failure(FailureKind.ERROR_IN_STREAM, message_in(data), 200)
            return
        self._assembler.add(chunk)


def read_answer(
    body: bytes, *, status: int = 200, content_type: str = "", asked: int | None = None
) -> Observation:
    """Read a complete HTTP answer, told apart by its content rather than by its label.

    A status that is no success gives a failure, so does whatever cannot be read.
    """
    if status >= 300:
        return Observation(failure=failure_of_status(status, body))
    head = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if head not in (b"{", b"[", b"") and (
        "event-stream" in content_type or body.lstrip(b"\xef\xbb\xbf\r\n").startswith(_SSE_STARTS)
    ):
        reader = StreamReader(asked=asked)
        reader.feed(body)
        return reader.finish()
    if "event-stream" in content_type and head == b"":
        return StreamReader(asked=asked).finish()
    return _read_json(body, asked)


_SSE_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")


def _read_json(body: bytes, asked: int | None) -> Observation:
    assembler = Assembler(asked=asked)
    failure: Failure | None = None
    if not body.strip():
        failure = Failure(FailureKind.UNREADABLE, "the answer is empty")
    else:
        try:
            chunk = decode_chunk(body, assembler.notes)
        except DeadLetterError as error:
            failure = Failure(FailureKind.UNREADABLE, str(error))
        else:
            if chunk.error or chunk.object == "error":
                failure = Failure(FailureKind.ERROR_IN_STREAM, message_in(body), 200)
            elif chunk.choices is None:
                failure = Failure(FailureKind.UNREADABLE, "the answer is a JSON object without choices")
            assembler.add(chunk)
            if failure is None and not chunk.choices:
                assembler.note("no_choices")
    return assembler.observation(failure=failure, has_done=True)
