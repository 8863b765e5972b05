"""Pieces between white space that no word looks like, in any language."""

from __future__ import annotations

import re

_MOST_PIECES = 160
# Greek is left out, which formulas glue to Latin, and Vietnamese, which is Latin from U+1E00 on.
_MIXED = re.compile(r"[A-Za-z\u00c0-\u024f][\u0400-\u1cff\u3040-\ud7af]|[\u0400-\u1cff\u3040-\ud7af][A-Za-z]")
_DIGIT_IN = r"(?<![a-z])[a-f]*+[g-z][a-z]++\d"  # which no hexadecimal number has
_HAS_DIGIT_IN = re.compile(_DIGIT_IN)
_GLUED = re.compile(_DIGIT_IN + r"|\)[a-z]|[a-z][;,!?]{1,3}[a-z]|[a-z]\.[a-z]{4,}[,.]|\w_$")
_AROUND = ".,;:!?\"')"
_STRAY = re.compile(r"[^\w\s\-\u2013\u2014&+=/|*#>$%@\u2022\u00b7\u2190-\U0001faff]{1,4}")
_PAUSE = re.compile(r"\.{1,3}|\u2026")
_CHECK_BOX = re.compile(r"\[[ xX]\]")
_VOWELS = frozenset("aeiouyàáâãäåèéêëìíîïòóôõöùúûüýœæø")


def odd_share(text: str) -> tuple[int, int]:
    """(odd, all) pieces between white space among the first 160.

    Odd are: two scripts or a digit glued into a word, punctuation without a space after
    it or standing alone, four or more Latin letters without a vowel.
    """
    text = text[: 64 * _MOST_PIECES]
    pieces = without_check_boxes(text).split()[:_MOST_PIECES]
    return sum(map(_is_odd, pieces)), len(pieces)


def without_check_boxes(text: str) -> str:
    """The text without the boxes of its lists of tasks."""
    return _CHECK_BOX.sub("", text) if "- [" in text else text


def _is_odd(piece: str) -> bool:
    if piece.isascii():
        if piece.isalpha():
            if piece.islower() or piece.istitle():
                return len(piece) > 4 and _VOWELS.isdisjoint(piece.lower())
            return False  # capitals inside are names
        if piece.isalnum():
            return _HAS_DIGIT_IN.search(piece) is not None
        if piece.rstrip(_AROUND).isalpha():
            return False  # a word and its punctuation
        if not any(map(str.isalnum, piece)):
            return _STRAY.fullmatch(piece) is not None and _PAUSE.fullmatch(piece) is None
        return _GLUED.search(piece) is not None
    return _MIXED.search(piece) is not None or _STRAY.fullmatch(piece) is not None
