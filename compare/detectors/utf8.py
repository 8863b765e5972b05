"""Family `utf8`: broken characters. Token strings may show U+FFFD for half a character: only the
assembled text is judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compare.detectors.facts import Part
from compare.detectors.subject import Subject
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_REPLACEMENT = "\ufffd"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*(\\u[fF]{3}[dD])")
_ESCAPED_HALF = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_NAMES_IT = re.compile(r"U\+FFFD|replacement character|\\ufffd|0xFFFD|&#xfffd;|&#65533;", re.IGNORECASE)
_MOJIBAKE = re.compile(
    "\u00e2\u20ac[\u0080-\u00ff\u2018-\u203a\u2122\u0152\u0153\u02dc]|\u00c3[\u0080-\u009f\u00a1-\u00bf\u20ac\u2030]"
    "|\u00c2[\u00a0-\u00bf](?=\\S)|\u00f0\u0178[\u0080-\u02ff\u2018-\u2122]|[\u00d0\u00d1][\u0080-\u00bf][\u00d0\u00d1]"
    "|[\u00e3-\u00e9][\u0080-\u00bf\u0152-\u0178\u2018-\u2122][\u0080-\u00bf\u0152-\u0178\u2018-\u2122]"
)
_SAYS_ENCODING = re.compile(
    r"utf-?8|latin-?1|windows-?125|\bcp-?125|iso-?8859|mojibake|\bencod|\bdecod|\bcodec|charset|garbled"
    r"|code ?page",
    re.IGNORECASE,
)
_SAYS_UTF8 = re.compile(
    r"utf-?8|invalid (?:start|continuation) byte|codec can't (?:de|en)code|surrogate"
    r"|unicode(?:decode|encode)error|output that does not match the expected format"
    r"|stream did not contain valid|invalid unicode",
    re.IGNORECASE,
)


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `replacement_character`, `cut_character`, `lone_surrogate`, `mojibake`, `server_error`."""
    failure = subject.observation.failure
    if failure is not None and _SAYS_UTF8.search(failure.message):
        yield subject.finding(Family.UTF8, "server_error", "the server failed on bytes that are not UTF-8")
    for part in subject.parts:
        if not part.text.isascii():
            yield from _replacement(subject, part)
            yield from _halves(subject, part)
            yield from _mojibake(subject, part)
        elif part.place.startswith("arguments") and "\\u" in part.text:
            yield from _escaped(subject, part)


def _replacement(subject: Subject, part: Part) -> Iterable[Finding]:
    first = part.text.find(_REPLACEMENT)
    if first == -1 or _REPLACEMENT in subject.prompt:
        return
    last = part.text.rfind(_REPLACEMENT) + 1
    count = part.text.count(_REPLACEMENT)
    if _NAMES_IT.search(part.text) or _NAMES_IT.search(subject.prompt):
        return  # it is what the answer is about
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


def _halves(subject: Subject, part: Part) -> Iterable[Finding]:
    if match := _LONE_SURROGATE.search(part.text):
        yield subject.finding(
            Family.UTF8,
            "lone_surrogate",
            f"half of a surrogate pair at character {match.start()}",
            place=part.place,
            span=match.span(),
        )


def _mojibake(subject: Subject, part: Part) -> Iterable[Finding]:
    """Find UTF-8 that was read as Latin-1 or Windows-1252."""
    match = _MOJIBAKE.search(part.text)
    if match is None or match.group() in subject.prompt or "mojibake" in subject.prompt.lower():
        return
    if subject.other is not None and match.group() in subject.other.text:
        return
    if _SAYS_ENCODING.search(part.text):
        return  # it is what the answer is about
    yield subject.finding(
        Family.UTF8,
        "mojibake",
        f"UTF-8 read as another encoding: {match.group()!r}",
        place=part.place,
        span=match.span(),
    )


def _escaped(subject: Subject, part: Part) -> Iterable[Finding]:
    """Find what JSON escapes hide: the arguments of a call are text as the model wrote it."""
    for code, pattern in (("replacement_character", _ESCAPED), ("lone_surrogate", _ESCAPED_HALF)):
        match = pattern.search(part.text)
        if match is not None and match.group() not in subject.prompt and _REPLACEMENT not in subject.prompt:
            yield subject.finding(
                Family.UTF8,
                code,
                f"{match.group()!r} stands in a string",
                place=part.place,
                span=match.span(),
            )
