"""Whether a repetition was asked for: one answer alone cannot tell a loop from zeros on request."""

from __future__ import annotations

import re

from compare.detectors.subject import Subject

_QUOTED_COPIES = 2
_QUOTED_CHARACTERS = 12
_NAMES_BLANKS = re.compile(
    r"\bblanks?\b|\bspac(?:es?|ing)\b|white ?spaces?|\bempty (?:lines?|rows?)|new ?lines?\b|\bcarriage"
    r"|\btabs?\b|\bline[ -]?(?:feed|break)s?|\bindent|\bpad|\balign|\bascii|\bart\b|\blayout|\bcolumns?\b"
    r"|\bwidth|\bgrid|\bbanner|\bverbatim|\becho|\brepeat|\bcopy|\u7a7a|\u6362\u884c",
    re.IGNORECASE,
)


def is_asked_for(subject: Subject, unit: str) -> bool:
    """Whether the prompt names repetition, or itself holds `unit` several times in a row.

    Of blanks, it must name blanks: a poem on request does not end in hundreds of them.
    """
    if holds_loop(subject.prompt, unit):
        return True
    if unit.isspace():
        return _NAMES_BLANKS.search(subject.prompt) is not None
    return subject.request.asks_repetition


def other_side_repeats(subject: Subject, unit: str) -> bool:
    """Whether the other side's answer holds the same loop, at whatever rotation of its unit."""
    other = subject.other_answer
    return other is not None and any(holds_loop(part.text, unit) for part in other.parts)


def holds_loop(text: str, unit: str) -> bool:
    """Whether `text` repeats `unit` (or a rotation of it) about three times in a row.

    A short unit must fill twelve characters: two o's in a row are a word.
    """
    copies = max(_QUOTED_COPIES, -(-_QUOTED_CHARACTERS // max(len(unit), 1)))
    return bool(unit) and unit * copies in text
