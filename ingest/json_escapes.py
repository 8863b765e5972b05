r"""Text with its JSON escapes undone, and where each byte of it came from.

A secret may stand in JSON inside JSON inside a record, broken or not, with `\u0073` for an `s`. Each view
undoes one level of escapes in all of the text, so no parser has to agree that it is JSON.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

MAX_DEPTH = 6
"""Levels of escapes that are undone: more than JSON in tool arguments in a captured body has."""

_ESCAPE = re.compile(
    rb'\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|["\\/bfnrt])'
)
_SHORT = {
    b'"': b'"',
    b"\\": b"\\",
    b"/": b"/",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
}


class View:
    """One level: `data`, and the way back to the bytes that it was made from."""

    def __init__(self, data: bytes, depth: int, below: View | None, places: _Places | None) -> None:
        self.data = data
        self.depth = depth
        """How many levels of escapes were undone."""
        self._below = below
        self._places = places

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original bytes that `data[start:end]` stands for; escapes are taken whole."""
        if self._below is None or self._places is None:
            return start, end
        return self._below.original(*self._places.span(start, end))


def views(data: bytes) -> Iterator[View]:
    """The bytes as they are, then with one level of escapes undone after the other. Linear in `data`."""
    view = View(data, 0, None, None)
    yield view
    while view.depth < MAX_DEPTH and b"\\" in view.data:
        undone, places = _undone(view.data)
        if not places.starts:
            return
        view = View(undone, view.depth + 1, view, places)
        yield view


class _Places:
    """Where each escape stood: `starts` and `ends` in the view, `begins` and `stops` in what it is of."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.begins: list[int] = []
        self.stops: list[int] = []

    def span(self, start: int, end: int) -> tuple[int, int]:
        if end <= start:
            place = self._edge(start, is_end=False)
            return place, place
        return self._edge(start, is_end=False), self._edge(end - 1, is_end=True)

    def _edge(self, place: int, *, is_end: bool) -> int:
        """Where the byte at `place` begins below, or behind its last byte there."""
        number = bisect_right(self.starts, place) - 1
        if number < 0:
            return place + is_end
        if place < self.ends[number]:
            return self.stops[number] if is_end else self.begins[number]
        return self.stops[number] + place - self.ends[number] + is_end


def _undone(data: bytes) -> tuple[bytes, _Places]:
    places = _Places()
    parts: list[bytes] = []
    at = length = 0
    for found in _ESCAPE.finditer(data):
        begin, stop = found.span()
        plain = _plain(found.group()[1:])
        length += begin - at
        places.starts.append(length)
        length += len(plain)
        places.ends.append(length)
        places.begins.append(begin)
        places.stops.append(stop)
        parts += (data[at:begin], plain)
        at = stop
    parts.append(data[at:])
    return b"".join(parts), places


def _plain(escape: bytes) -> bytes:
    if escape[:1] != b"u":
        return _SHORT[escape]
    units = [int(part, 16) for part in escape.decode("ascii").split("\\")[0:2] for part in [part.lstrip("u")]]
    raw = b"".join(unit.to_bytes(2, "little") for unit in units)
    return raw.decode("utf-16-le", "replace").encode()
