"""Where two answers part: at a token, and in the texts that are shown, which are not always its tokens.

A server may take away what it was told before it sends the text: white space or a code fence around JSON, or
reasoning. The tokens still have it.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from dashboards.pair_views.plain import Span
from dashboards.pair_views.word_diff import WORD
from dashboards.shell.marks import Piece, boxed

LONGEST_BOXED = 40
"""Characters of a word that is boxed."""
_LEAD = 80
_MOST_TAKEN = 64
"""Characters that are looked for before a text that goes on behind its last token."""


class Parting(msgspec.Struct, frozen=True):
    """A stretch of each text, by role; none where the texts are the same. `is_token`: it is the token at
    which the answers part, else the word in which the texts first differ.
    """

    spans: Mapping[str, Span]
    is_token: bool


def parting_of(
    texts: Mapping[str, str],
    tokens: Mapping[str, Sequence[str]],
    position: int | None,
    notes: Mapping[str, str],
    text_note: str,
) -> Parting:
    """The token at `position` where both texts show it and first differ there; else the texts' own place.

    All are by role. `notes` are said of the token, `text_note` of a word.
    """
    at = first_difference(*texts.values())
    if position is not None and all(position <= len(tokens[role]) for role in texts):
        found = {role: token_span(texts[role], tokens[role], position, notes[role]) for role in texts}
        spans = {role: span for role, span in found.items() if span is not None}
        if len(spans) == len(texts) and all(
            at is None or span.start <= at <= span.end for span in spans.values()
        ):
            return Parting(spans, True)
    if at is None:
        return Parting({}, False)
    return Parting({role: _word_at(text, at, text_note) for role, text in texts.items()}, False)


def first_difference(left: str, right: str) -> int | None:
    """The first character, from 0, that the texts do not share; None if they are the same."""
    return None if left == right else len(os.path.commonprefix([left, right]))


def token_span(text: str, tokens: Sequence[str], position: int, note: str) -> Span | None:
    """Where the token at `position` stands in the text; None if it does not, or if that cannot be told.

    A token behind the last one is the end: an empty stretch at the end of the text.
    """
    before = "".join(tokens[:position])
    token = tokens[position] if position < len(tokens) else ""
    if text.startswith(before + token):
        return Span(len(before), len(before) + len(token), note)
    start = len(before) - (taken_before(text, tokens) or 0)
    is_there = 0 <= start <= len(text) and text.startswith(token, start)
    return Span(start, start + len(token), note) if is_there and start < len(before) else None


def taken_before(text: str, tokens: Sequence[str]) -> int | None:
    """How many characters the tokens have before the text; None if they do not spell it at all."""
    joined = "".join(tokens)
    if text.startswith(joined) or (text and joined.startswith(text)):
        return 0
    if (at := joined.rfind(text)) >= 0:
        return at
    most = min(len(joined) // 2, _MOST_TAKEN)
    return next((at for at in range(1, most + 1) if text.startswith(joined[at:])), None)


def box(pieces: Sequence[Piece], span: Span) -> Iterator[Piece]:
    """The pieces, cut so that the stretch of their text is one that is boxed."""
    start, is_boxed = 0, False
    for piece in pieces:
        end = start + len(piece.text)
        if is_boxed or piece.kind == "missing" or not start <= span.start < end:
            yield piece
            start = end
            continue
        is_boxed = True
        left, right = span.start - start, min(span.end, end) - start
        if left:
            yield msgspec.structs.replace(piece, text=piece.text[:left])
        yield from boxed(Piece(piece.text[left:right], note=span.note, mark="≠"))
        if piece.text[right:]:
            yield msgspec.structs.replace(piece, text=piece.text[right:])
        start = end
    if not is_boxed and span.start == span.end == start:
        yield Piece("", "divergence", span.note, mark="≠ <end>")


def _word_at(text: str, at: int, note: str) -> Span:
    """The word that has the character, at most LONGEST_BOXED of it; white space from the character on."""
    for found in WORD.finditer(text, max(0, at - _LEAD)):
        if found.end() > at:
            start = at if found.group().isspace() else max(found.start(), at - LONGEST_BOXED // 2)
            return Span(start, min(found.end(), start + LONGEST_BOXED), note)
    return Span(len(text), len(text), note)
