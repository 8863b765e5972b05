"""Family `garbage`, the rubble's part: digits, single letters and signs without order, and no word.

What a broken layer emits when it is not stuck on one token. Honest text of that look has an order that
shows: a board, a list of moves, figures or formulas uses few shapes over and over, and the request names it.
"""

from __future__ import annotations

import re
from itertools import islice

from compare.detectors.odd_pieces import odd_counts
from compare.detectors.subject import Subject
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_MOST = 256
_MIN_PIECES = 24
_MIN_SHAPES = 8
_VOWELS = frozenset("aeiouyAEIOUY")
_WORD = re.compile(r"(?<!\w)(?=[^\W\d_]{3,}(?!\w))[^\W\d_]*?[aeiouyAEIOUY]")
_PLAIN = re.compile(r"[-+(\[$\u20ac\u00a3]*\d+(?:[.,:/]\d+)*[%)\].,:;]*|[^\W\d_]{1,2}[.,:;!?)]?")
_RUN = re.compile(r"[^\W\d_]+|\d+|([^\w\s])\1+")
_MACHINE = re.compile(
    r"[0-9A-Fa-f]{2,}(?:[:.\-][0-9A-Fa-f]*)*|(?:[pnbrqkPNBRQK1-8]{1,8}/){7}[pnbrqkPNBRQK1-8]{1,8}"
    r"|[A-Za-z0-9]{2,8}(?:-[A-Za-z0-9]{2,8}){2,}|[A-Za-z0-9+/_=\-]{16,}"
)
"""Hex digits and addresses, chess boards, keys in groups, base64."""
_HAS_FORM = re.compile(r"[{}=|]|```|://|\\[a-z]{2}")
_ASKS_NOTATION = re.compile(
    r"regex|regular expression|brainf|ascii|emoji|\bart\b|\bcodes?\b|punctuation|symbols?\b|operators?\b"
    r"|esolang|latex|formula|equation|math|kaomoji|emoticon|perl\b|\bapl\b|glyph|command|shortcut|notation|cron"
    r"|chess|\bmoves?\b|chord|\btabs?\b|password|random|cipher|encod|decod|encrypt|serial|licen[cs]e key"
    r"|plates?\b|hex|binary|grid|board|sequence|pattern|coordinates?|matri|numbers?\b|digits?\b|letters?\b"
    r"|characters?\b|strings?\b|sizes?\b|list|table|puzzle|sudoku|gibberish|nonsense|knit|crochet|golf"
    r"|transcri|\bfen\b|\bkeys?\b|checksum|hash|uuid|address|base ?\d\d|genom|protein|peptide"
    r"|phonetic|ipa\b|abbreviat|vim\b|key ?(?:bind|map)|sheet music|solfege|molecul|chemi",
    re.IGNORECASE,
)


def detect_debris(subject: Subject, settings: DetectorSettings) -> Finding | None:
    """Return a `debris` finding on the answer's text, or None.

    Nearly no piece between white space is a word, many are neither words nor numbers, and these have many
    shapes (runs of letters or digits written as one).
    """
    text = subject.observation.text
    pieces = text[: 64 * _MOST].split()[:_MOST]
    if len(pieces) < _MIN_PIECES:
        return None
    most = int(settings.debris_word_share * len(pieces))
    words = (piece for piece in _may_be_words(pieces) if not piece.isascii() or _is_word(piece))
    if next(islice(words, most, None), None) is not None:
        return None  # one word more than that
    if _HAS_FORM.search(text) or _is_asked(subject):
        return None
    odd = [piece for piece in pieces if not (_PLAIN.fullmatch(piece) or _MACHINE.fullmatch(piece))]
    share = len(odd) / len(pieces)
    if share < settings.debris_share:
        return None
    shapes = {_RUN.sub(_shape, piece) for piece in odd}
    # The other side's prose is proof enough that no notation was wanted.
    least = _MIN_SHAPES if subject.other_answer is not None else settings.debris_shapes_share * len(odd)
    if len(shapes) < max(least, _MIN_SHAPES):
        return None
    return subject.finding(
        Family.GARBAGE,
        "debris",
        f"{len(odd)} of {len(pieces)} pieces are neither words nor numbers, of {len(shapes)} shapes",
        place="text",
        span=(0, len(text)),
        measured=share,
        threshold=settings.debris_share,
    )


def _is_asked(subject: Subject) -> bool:
    """Whether the other side has few words, too; without one, whether the request asks for notation."""
    other, prompt = subject.other_answer, subject.prompt
    if other is not None:
        pieces = other.observation.text.split()[:_MOST]
        return sum(map(_is_word, _may_be_words(pieces))) < len(pieces) / 2
    if not prompt or subject.request.asks_repetition or _ASKS_NOTATION.search(prompt):
        return True
    counts = odd_counts(prompt)
    return counts.odd + counts.foreign > counts.pieces / 8


def _may_be_words(pieces: list[str]) -> list[str]:
    """The pieces without those that are letters and digits only, with both."""
    return [piece for piece in pieces if piece.isalpha() or not (piece.isalnum() and piece.isascii())]


def _is_word(piece: str) -> bool:
    """Whether three letters or more, a vowel among them, stand between what is neither letter nor digit."""
    if piece.isalpha():
        return len(piece) > 2 and not _VOWELS.isdisjoint(piece)
    return _WORD.search(piece) is not None


def _shape(match: re.Match[str]) -> str:
    run = match.group()
    return "a" if run[0].isalpha() else "0" if run[0].isdigit() else run[0]
