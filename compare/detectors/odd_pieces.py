"""Pieces between white space that no word looks like, in any language."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

_MOST_PIECES = 160
# Greek is left out, which formulas glue to Latin, and Vietnamese, which is Latin from U+1E00 on.
_MIXED = re.compile(r"[A-Za-z\u00c0-\u024f][\u0400-\u1cff\u3040-\ud7af]|[\u0400-\u1cff\u3040-\ud7af][A-Za-z]")
_GLUED = re.compile(r"\)[a-z]|[a-z],*+[;!?][;,!?]*+[a-z]|\w_$")
# What machine strings, names of files and lists without spaces have, too.
_DIGIT_IN = r"(?<![a-z])[a-f]*+[g-z][a-z]++\d"  # which no hexadecimal number has
_HAS_DIGIT_IN = re.compile(_DIGIT_IN)
_FOREIGN = re.compile(_DIGIT_IN + r"|[a-z],{1,3}[a-z]|[a-z]\.[a-z]{4,}[,.]")
_AROUND = ".,;:!?\"')"
_STRAY = re.compile(r"[^\w\s\-\u2013\u2014&+=/|*#>$%@\u2022\u00b7\u2190-\U0001faff]{1,4}")
_PAUSE = re.compile(r"\.{1,3}|\u2026")
_CHECK_BOX = re.compile(r"\[[ xX]\]")
_VOWELS = frozenset("aeiouyàáâãäåèéêëìíîïòóôõöùúûüýœæø")


class OddCounts(NamedTuple):
    """Pieces between white space among the first 160 of a text.

    `odd`: two scripts in a word, punctuation without a space after it or standing alone. `foreign`: a digit
    glued into a word, a comma or full stop without a space, or five and more Latin letters without a vowel,
    as in checksums, keys, sequences, names of hosts and files.
    """

    odd: int
    foreign: int
    pieces: int


def odd_counts(text: str) -> OddCounts:
    """Count the pieces that no word looks like."""
    text = text[: 64 * _MOST_PIECES]
    pieces = without_check_boxes(text).split()[:_MOST_PIECES]
    kinds = [_kind(piece) for piece in pieces]
    return OddCounts(kinds.count("odd"), kinds.count("foreign"), len(pieces))


def without_check_boxes(text: str) -> str:
    """The text without the boxes of its lists of tasks."""
    return _CHECK_BOX.sub("", text) if "- [" in text else text


def _kind(piece: str) -> Literal["word", "odd", "foreign"]:
    if not piece.isascii():
        return "odd" if _MIXED.search(piece) or _STRAY.fullmatch(piece) else "word"
    if piece.isalpha():
        # Capitals inside are names.
        is_plain = piece.islower() or piece.istitle()
        return "foreign" if is_plain and len(piece) > 4 and _VOWELS.isdisjoint(piece.lower()) else "word"
    if piece.isalnum():
        return "foreign" if _HAS_DIGIT_IN.search(piece) else "word"
    if piece.rstrip(_AROUND).isalpha():
        return "word"  # with its punctuation
    if not any(map(str.isalnum, piece)):
        return "odd" if _STRAY.fullmatch(piece) and not _PAUSE.fullmatch(piece) else "word"
    return "odd" if _GLUED.search(piece) else "foreign" if _FOREIGN.search(piece) else "word"
