"""An incremental parser of the WHATWG event-stream format (HTML standard, section 9.2.6).

Bytes go in at any boundary, events come out. Lines are split on bytes: CR and LF never occur inside
a multi-byte UTF-8 character, so a character that is cut in two is put together before it is decoded.
"""

from __future__ import annotations

import msgspec

STRAY = "{"

_BOM = b"\xef\xbb\xbf"


class SseEvent(msgspec.Struct, frozen=True):
    """One event. `data` holds the data lines joined by LF, as bytes, not yet decoded."""

    data: bytes
    event: str = "message"


class SseParser:
    """Feed it bytes with `feed`, end it with `close`. Time and memory are linear in the input.

    `id:` and `retry:` lines are read and ignored: they serve reconnection, and an answer that broke off
    is never resumed.

    `keeps_strays`: give also what the standard ignores and what is all that a client learns of a failure: a
    line `error: ...`, as llama.cpp once wrote it, as an event `error`, and a line that begins with a brace
    instead of a field's name as an event STRAY.
    """

    def __init__(self, *, keeps_strays: bool = False) -> None:
        self._keeps_strays = keeps_strays
        self._start: bytes | None = b""
        """Up to two first bytes that may be part of a byte order mark; None once that is settled."""
        self._partial: list[bytes] = []
        self._skip_line_feed = False
        self._data: list[bytes] = []
        self._event = ""

    @property
    def is_between_events(self) -> bool:
        """Whether the next byte begins a line and, with that, a new event."""
        return not (self._start or self._skip_line_feed or self._partial or self._data or self._event)

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes and return the events that they complete. Raises nothing."""
        if self._start is not None:
            chunk = self._without_bom(self._start + chunk)
        if self._skip_line_feed and chunk:
            self._skip_line_feed = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        events: list[SseEvent] = []
        # Of bytes, splitlines knows just the three line ends of the standard.
        for line in chunk.splitlines(keepends=True):
            if not line.endswith((b"\n", b"\r")):
                self._partial.append(line)
                break
            piece = line.rstrip(b"\r\n")
            if self._partial:
                self._partial.append(piece)
                piece = b"".join(self._partial)
                self._partial = []
            self._take_line(piece, events)
        # Where a CR ended the last line, an LF at the start of the next chunk belongs to it.
        self._skip_line_feed = self._skip_line_feed or chunk.endswith(b"\r")
        return events

    def close(self) -> SseEvent | None:
        """End the input and return the event that no blank line ended, or None.

        The standard discards it. A reader of answers may still want it, since some servers end with
        `data: [DONE]` and one line feed or none; it must judge for itself whether the event is whole.
        """
        if self._start:
            self._partial.append(self._start)
        self._start = None
        events: list[SseEvent] = []
        if self._partial:
            line, self._partial = b"".join(self._partial), []
            self._take_line(line, events)
        self._take_line(b"", events)
        return events[0] if events else None

    def _without_bom(self, chunk: bytes) -> bytes:
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._start = chunk
            return b""
        self._start = None
        return chunk[len(_BOM) :] if chunk.startswith(_BOM) else chunk

    def _take_line(self, line: bytes, events: list[SseEvent]) -> None:
        if not line:
            if self._data:
                events.append(SseEvent(b"\n".join(self._data), self._event or "message"))
            self._data, self._event = [], ""
            return
        name, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif self._keeps_strays and name == b"error":
            events.append(SseEvent(value, "error"))
        elif self._keeps_strays and line.startswith(b"{"):
            events.append(SseEvent(line, STRAY))
