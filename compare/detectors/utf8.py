"""Family `utf8`: broken characters. Token strings may show U+FFFD for half a character: only the
assembled text is judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compare.detectors.subject import Subject
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_REPLACEMENT = "\ufffd"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SAYS_UTF8 = re.compile(
    r"utf-?8|invalid (?:start|continuation) byte|codec can't (?:de|en)code|surrogate"
    r"|output that does not match the expected format",
    re.IGNORECASE,
)


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `replacement_character`, `lone_surrogate`, `server_error`."""
    failure = subject.observation.failure
    if failure is not None and _SAYS_UTF8.search(failure.message):
        yield subject.finding(Family.UTF8, "server_error", "the server failed on bytes that are not UTF-8")
    for part in subject.parts:
        first = part.text.find(_REPLACEMENT)
        if first != -1 and _REPLACEMENT not in subject.prompt:
            last = part.text.rfind(_REPLACEMENT) + 1
            count = part.text.count(_REPLACEMENT)
            # The token limit may cut a character in two: that is the request's doing.
            is_cut = first >= len(part.text) - 3 and last == len(part.text) and subject.is_limited
            yield subject.finding(
                Family.UTF8,
                "cut_character" if is_cut else "replacement_character",
                f"{count} replacement characters, first at character {first}",
                place=part.place,
                span=(first, last),
                is_fault=not is_cut,
                measured=float(count),
                threshold=1.0,
            )
        if match := _LONE_SURROGATE.search(part.text):
            yield subject.finding(
                Family.UTF8,
                "lone_surrogate",
                f"half of a surrogate pair at character {match.start()}",
                place=part.place,
                span=match.span(),
            )
