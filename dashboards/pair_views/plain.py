"""An answer's text with its evidence and the place where the answers part, cut where it is too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dashboards.shell.marks import Piece, boxed, spans_marked

MAX_CHARACTERS = 40_000
"""Shown of one answer: streams of hundreds of kilobytes would keep a browser busy."""
HEAD = 2_000
"""Of these, shown from the beginning where what is marked lies far behind it."""
LEAD = 1_000
"""Shown before the first mark there."""


class Span(NamedTuple):
    """A stretch of the text in characters, and what is said of it."""

    start: int
    end: int
    note: str


class Shown(NamedTuple):
    """The pieces, and how many characters of the text are left out."""

    pieces: list[Piece]
    left_out: int


def plain(text: str, evidence: Sequence[Span], parting: Span | None, gap: str) -> Shown:
    """The text with `evidence` marked, and the place where the answers part; `gap` is put for what is cut.

    Too long a text shows its head and MAX_CHARACTERS in all; a mark behind those moves them there.
    """
    stretches = _stretches(len(text), [*evidence, *([parting] if parting else [])])
    pieces: list[Piece] = []
    for start, end in stretches:
        if pieces or start:
            pieces.append(Piece(f"\n{gap}\n", "missing"))
        pieces += _marked(text[start:end], start, evidence, parting)
    shown = sum(end - start for start, end in stretches)
    if stretches and stretches[-1][1] < len(text):
        pieces.append(Piece(f"\n{gap}", "missing"))
    return Shown(pieces, len(text) - shown)


def _stretches(length: int, spans: Sequence[Span]) -> list[tuple[int, int]]:
    if length <= MAX_CHARACTERS:
        return [(0, length)] if length else []
    first = min((span.start for span in spans), default=0)
    if first < MAX_CHARACTERS - LEAD:
        return [(0, MAX_CHARACTERS)]
    start = first - LEAD
    return [(0, HEAD), (start, min(length, start + MAX_CHARACTERS - HEAD))]


def _marked(text: str, at: int, evidence: Sequence[Span], parting: Span | None) -> list[Piece]:
    spans = [(span.start - at, span.end - at, span.note) for span in evidence]
    if parting is None or not at <= parting.start <= at + len(text):
        return spans_marked(text, spans)
    start, end = parting.start - at, min(parting.end - at, len(text))
    # The parting may stand inside evidence: its piece then has both notes.
    around = [note for left, right, note in spans if left < end and right > start]
    pieces = spans_marked(text[:start], spans)
    mark = "≠" if end > start else "≠ <end>"
    pieces += boxed(Piece(text[start:end], note="\n".join([parting.note, *around]), mark=mark))
    behind = [(left - end, right - end, note) for left, right, note in spans]
    return pieces + spans_marked(text[end:], behind)
