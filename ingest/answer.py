"""From an HTTP answer, whole or streamed, to an Observation. Nothing in an answer raises an error here.

The dialect and the framing (event stream, one object a line, one JSON text) are told by the content, not by
the label. The codes that may be in `Observation.notes` are those of `ingest.notes`.
"""

from __future__ import annotations

import re

from ingest.answer_reader import AnswerReader
from ingest.errors import DeadLetterError
from ingest.http_errors import failure_of_status
from ingest.observation import MAX_LOGPROB_TOKENS, Failure, FailureKind, Observation
from ingest.sse import STRAY, SseEvent, SseParser
from ingest.tolerant_json import loads

UNREADABLE_EVENT = "an event of the stream is no JSON object"
STREAM_WITHOUT_CHOICES = "the stream holds no choices"
"""The messages of `FailureKind.UNREADABLE` where what cannot be read is a stream."""

_DONE = (b"[DONE]", b'"[DONE]"', b"[done]")
_PREFIXES = re.compile(rb"(?:data:[ \t\r\n]*+)++")
_SPACE = b"\xef\xbb\xbf \t\r\n"


class StreamReader:
    """Read one stream: `feed` bytes as they arrive, then `finish` once.

    `asked` is the number of alternatives that the request asked for, None if it is not known. Memory
    grows with the text and with the first MAX_LOGPROB_TOKENS tokens only.
    """

    def __init__(self, *, asked: int | None = None) -> None:
        self._reader = AnswerReader(asked=asked)
        self._sse: SseParser | None = None
        self._lines: _Lines | None = None
        self._head = b""
        self._is_unreadable = False
        self.is_done = False
        """Whether the end mark `[DONE]` was seen: nothing is expected after it."""
        self.events = 0
        """How many events came; comments (keep-alive) do not count."""

    @property
    def has_content(self) -> bool:
        """Whether a first piece of text, reasoning or tool call has come, or a token that shows no text."""
        assembler = self._reader.assembler
        return assembler.has_content or assembler.room < MAX_LOGPROB_TOKENS

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body."""
        if self._sse is not None:
            self._feed_events(self._sse, chunk)
        elif self._lines is not None:
            for line in self._lines.feed(chunk):
                self._take_line(line)
        elif chunk:
            self._begin(chunk)

    def finish(self, *, broken: str | None = None) -> Observation:
        """End the stream. `broken` says how the connection was lost, None for an orderly end."""
        if self._lines is not None:
            return self._finish_lines(self._lines, broken)
        if self._sse is None:
            self._sse = SseParser(keeps_strays=True)
            self.feed(self._head)
        last = self._sse.close()
        if last is not None and (broken is None or _is_whole(last.data)):
            was_unreadable = self._is_unreadable
            self._take_event(last)
            # The standard discards an event that no blank line ends; if it is cut, so does this.
            self._is_unreadable = was_unreadable
        return self._reader.observation(self._failure(broken), has_done=self.is_done)

    def _feed_events(self, sse: SseParser, chunk: bytes) -> None:
        """Take events: in a row those that are all alike, one by one those that are not."""
        place = 0
        while chunk.startswith(b"data: ", place) and not self.is_done and sse.is_between_events:
            place, count = self._reader.take_events(chunk, place)
            self.events += count
            end = chunk.find(b"\n\n", place) + 2
            if end < 2:
                break
            for event in sse.feed(chunk[place:end]):
                self._take_event(event)
            place = end
        for event in sse.feed(chunk[place:]):
            self._take_event(event)

    def _begin(self, chunk: bytes) -> None:
        """Tell by the first character whether these are events or JSON."""
        # White space at the start is kept only until it is over, and a long run of it says: no JSON.
        self._head += chunk
        start = self._head[:64].lstrip(_SPACE)[:1]
        if not start and len(self._head) < 64:
            return
        head, self._head = self._head, b""
        if start in (b"{", b"["):
            self._lines = _Lines()
            head = head.lstrip(_SPACE)
        else:
            self._sse = SseParser(keeps_strays=True)
        self.feed(head)

    def _failure(self, broken: str | None) -> Failure | None:
        assembler = self._reader.assembler
        if not self.is_done:
            if assembler.finish_reason is None:
                return Failure(
                    FailureKind.CUT_STREAM, broken or "the stream ended without a finish reason and [DONE]"
                )
            if broken is not None:
                assembler.note("lost_after_finish")
        if self._is_unreadable:
            return Failure(FailureKind.UNREADABLE, UNREADABLE_EVENT)
        if not assembler.has_choices:
            return Failure(FailureKind.UNREADABLE, STREAM_WITHOUT_CHOICES)
        return None

    def _take_event(self, event: SseEvent) -> None:
        data = event.data.strip()
        if self.is_done:
            if data:
                self._reader.assembler.note("data_after_done")
            return
        self.events += 1
        if data.startswith(b"data:"):
            self._reader.assembler.note("data_prefix_doubled")
            prefixes = _PREFIXES.match(data)
            data = data[prefixes.end() :] if prefixes is not None else data
        if not data:
            return
        if data in _DONE:
            self.is_done = True
            return
        if event.event == STRAY:
            self._reader.assembler.note("stray_line")
            self._reader.take(data)
            return
        is_error = event.event == "error"
        if not is_error and b"\n" in data and self._take_unseparated(data):
            return
        if not self._reader.take(data, is_error=is_error):
            self._reader.assembler.note("unreadable_event")
            self._is_unreadable = True

    def _take_unseparated(self, data: bytes) -> bool:
        """Take data lines that are an event each, where the blank lines between them are missing."""
        lines = [line.strip() for line in data.split(b"\n") if line.strip()]
        if not all(line in _DONE or (line.startswith(b"{") and line.endswith(b"}")) for line in lines):
            return False
        if len(lines) < 2:
            return False
        self._reader.assembler.note("events_not_separated")
        for line in lines:
            self._take_event(SseEvent(line))
        return True

    def _take_line(self, line: bytes) -> None:
        if self.is_done:
            self._reader.assembler.note("data_after_done")
            return
        if line.strip() in _DONE:
            self.is_done = True
            return
        self.events += 1
        if not self._reader.take(line):
            self._reader.assembler.note("unreadable_event")
            self._is_unreadable = True

    def _finish_lines(self, lines: _Lines, broken: str | None) -> Observation:
        rest = lines.close()
        is_whole = broken is None or _is_whole(rest)
        if not lines.is_split:
            if not is_whole:
                return self._reader.observation(Failure(FailureKind.CUT_STREAM, broken or ""), has_done=False)
            return _read_json(self._reader, rest)
        if rest.strip() and is_whole:
            self._take_line(rest)
        if self.events == 1 and not self._is_unreadable:
            # One object and a line feed: no stream.
            return self._reader.observation(_json_failure(self._reader), has_done=True)
        self.is_done = self.is_done or self._reader.assembler.finish_reason is not None
        return self._reader.observation(self._failure(broken), has_done=self.is_done)


class _Lines:
    """Splits JSON that is one object a line; gives all of it at the end if it is not.

    It is split once the first line closes as an object, so that JSON printed over several lines stays whole.
    """

    def __init__(self) -> None:
        self.is_split: bool | None = None
        """None until the first line has come."""
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take bytes and return the lines that they complete."""
        if self.is_split is False or b"\n" not in chunk:
            self._parts.append(chunk)
            return []
        pieces = chunk.split(b"\n")
        pieces[0] = b"".join([*self._parts, pieces[0]])
        if self.is_split is None:
            first = pieces[0].strip(_SPACE)
            self.is_split = first.startswith(b"{") and first.endswith(b"}")
            if not self.is_split:
                self._parts.append(chunk)
                return []
        self._parts = [pieces.pop()]
        return [line for line in pieces if line.strip()]

    def close(self) -> bytes:
        """Return what no line feed ended: all of it where it was not split."""
        return b"".join(self._parts)


def read_answer(
    body: bytes,
    *,
    status: int = 200,
    content_type: str = "",
    asked: int | None = None,
    broken: str | None = None,
) -> Observation:
    """Read a complete HTTP answer, told apart by its content rather than by its label.

    A status that is no success gives a failure, so does whatever cannot be read. `broken` says how
    the connection was lost, None for an orderly end.
    """
    if status >= 300:
        return Observation(failure=failure_of_status(status, body))
    head = body[:4096].lstrip(_SPACE)
    if head.startswith((b"{", b"[")) or "event-stream" in content_type or is_event_stream(head):
        reader = StreamReader(asked=asked)
        reader.feed(body)
        return reader.finish(broken=broken)
    if broken is not None:
        return Observation(failure=Failure(FailureKind.CUT_STREAM, broken), has_done=False)
    return _read_json(AnswerReader(asked=asked), body)


def is_event_stream(head: bytes) -> bool:
    """Whether a body that begins with `head` is an event stream, whatever its label says."""
    return head.lstrip(_SPACE).startswith(_SSE_STARTS)


_SSE_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")


def _is_whole(data: bytes) -> bool:
    """Whether JSON, or an end mark, is there in full although the connection broke off behind it."""
    if data.strip() in _DONE:
        return True
    try:
        loads(data, {})
    except DeadLetterError:
        return False
    return True


def _read_json(reader: AnswerReader, body: bytes) -> Observation:
    if not body.strip(_SPACE):
        failure: Failure | None = Failure(FailureKind.UNREADABLE, "the answer is empty")
    elif not reader.take(body):
        failure = Failure(FailureKind.UNREADABLE, _why_unreadable(body))
    else:
        failure = _json_failure(reader)
    return reader.observation(failure, has_done=True)


def _json_failure(reader: AnswerReader) -> Failure | None:
    assembler = reader.assembler
    if assembler.is_partial and assembler.finish_reason is None:
        return Failure(FailureKind.CUT_STREAM, "the server says that more was to come")
    if assembler.has_choices:
        return None
    if assembler.has_empty_choices:
        assembler.note("no_choices")
        return None
    return Failure(FailureKind.UNREADABLE, _NO_CHOICES)


_NO_CHOICES = "the answer is a JSON object without choices"
_SHOWN = 40


def _why_unreadable(body: bytes) -> str:
    if not body.lstrip(_SPACE).startswith((b"{", b"[", b'"')):
        begin = body.lstrip(_SPACE)[: 4 * _SHOWN].decode("utf-8", "replace")
        shown = ascii(begin[:_SHOWN])
        return (
            f"neither JSON nor an event stream: it begins with {shown}{'...' if len(begin) > _SHOWN else ''}"
        )
    try:
        value = loads(body, {})
    except DeadLetterError as error:
        return str(error)
    return f"expected a JSON object, got {type(value).__name__}"
