"""Family `garbage`: tokens that mean nothing, in text, reasoning and tool arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compare.detectors.asked import is_asked_for
from compare.detectors.repetition import stuttered_words
from compare.detectors.scripts import scripts_in
from compare.detectors.subject import Part, Subject, shorten
from compare.detectors.toolcall import RESERVED
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_LEAK = re.compile("\u2581{2,}|\u2581(?=\\w)|\u0120[a-z]+\u0120[a-z]|\u010a{2}|\u010a\u0120")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
_FILL = re.compile(r"([^\s\d])\1{7,}")
_NAME = re.compile(r"(?<!\w)\w{40,}")
_NAME_MIN_JOINTS = 8
_WORD = re.compile(r"[^\W\d]{1,64}")
_RULES = frozenset("-=_*~.+|\u2014\u2015") | frozenset(chr(code) for code in range(0x2500, 0x25A0))
_FUNCTION_WORDS = frozenset(
    [
        "the",
        "of",
        "to",
        "and",
        "a",
        "in",
        "is",
        "it",
        "that",
        "for",
        "on",
        "with",
        "as",
        "at",
        "by",
        "an",
        "be",
        "this",
        "are",
        "was",
        "or",
        "from",
        "not",
        "but",
        "of",
    ]
)
_SALAD_MIN_WORDS = 12
_SALAD_MIN_DISTINCT = 0.25


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `reserved_tokens`, `fill`, `detokenizer_leak`, `control_characters`, `mixed_scripts`, ..."""
    if not subject.has_text_to_judge:
        return
    for part in subject.parts:
        yield from _reserved(subject, part)
        yield from _fill(subject, part, settings)
        yield from _pattern(subject, part, _LEAK, "detokenizer_leak", "a detokenizer's mark is in the text")
        yield from _pattern(
            subject, part, _CONTROL, "control_characters", "a control character is in the text"
        )
        yield from _identifier(subject, part, settings)
    text = Part("text", subject.observation.text)
    yield from _mixed_scripts(subject, text, settings)
    yield from _salad(subject, text, settings)


def _reserved(subject: Subject, part: Part) -> Iterable[Finding]:
    hits = [match for match in RESERVED.finditer(part.text) if match.group() not in subject.prompt]
    if not hits or _is_quoted(part.text, hits[0].start()):
        return
    yield subject.finding(
        Family.GARBAGE,
        "reserved_tokens",
        f"{len(hits)} reserved tokens such as {hits[0].group()} are in the text",
        place=part.place,
        span=(hits[0].start(), hits[-1].end()),
        measured=float(len(hits)),
        threshold=1.0,
    )


def _fill(subject: Subject, part: Part, settings: DetectorSettings) -> Iterable[Finding]:
    """Find one character over and over: token 0 of some vocabularies is `!`."""
    for match in _FILL.finditer(part.text):
        char, length = match.group(1), match.end() - match.start()
        is_whole = length >= 0.9 * len(part.text.strip())
        is_at_end = match.end() == len(part.text.rstrip())
        if length < settings.fill_min_characters or is_asked_for(subject, char):
            continue
        if (char in _RULES or not is_at_end) and not is_whole:
            continue  # a rule, a border, a bar: honest text has them, and goes on
        yield subject.finding(
            Family.GARBAGE,
            "fill",
            f"{char!r} comes {length} times in a row",
            place=part.place,
            span=match.span(),
            measured=float(length),
            threshold=float(settings.fill_min_characters),
        )
        return


def _pattern(
    subject: Subject, part: Part, pattern: re.Pattern[str], code: str, message: str
) -> Iterable[Finding]:
    match = pattern.search(part.text)
    if match is None or match.group() in subject.prompt:
        return
    if subject.other is not None and match.group() in subject.other.text:
        return
    yield subject.finding(
        Family.GARBAGE, code, f"{message}: {match.group()!r}", place=part.place, span=match.span()
    )


def _identifier(subject: Subject, part: Part, settings: DetectorSettings) -> Iterable[Finding]:
    """Find one endless name of many words; base64 and hashes have no underscores between words."""
    for match in _NAME.finditer(part.text):
        name, length = match.group(), match.end() - match.start()
        if length < settings.identifier_min_characters or name.count("_") < _NAME_MIN_JOINTS:
            continue
        if name in subject.prompt:
            continue
        yield subject.finding(
            Family.GARBAGE,
            "endless_identifier",
            f"a name of {length} characters: {shorten(name)}",
            place=part.place,
            span=match.span(),
            measured=float(length),
            threshold=float(settings.identifier_min_characters),
        )
        return


def _mixed_scripts(subject: Subject, part: Part, settings: DetectorSettings) -> Iterable[Finding]:
    known = scripts_in(subject.prompt)
    if subject.other is not None:
        known |= scripts_in(subject.other.text)
    foreign = scripts_in(part.text) - known
    if len(foreign | {"LATIN"}) < settings.noise_min_scripts:
        return
    yield subject.finding(
        Family.GARBAGE,
        "mixed_scripts",
        f"scripts that neither prompt nor other side use: {', '.join(sorted(foreign))}",
        place=part.place,
        span=(0, len(part.text)),
        measured=float(len(foreign | {"LATIN"})),
        threshold=float(settings.noise_min_scripts),
    )


def _salad(subject: Subject, part: Part, settings: DetectorSettings) -> Iterable[Finding]:
    """Find words without a sentence: mostly function words, or unrelated words each stuttered."""
    stuttered = stuttered_words(part.text, settings)
    if len(stuttered) >= settings.stutter_min_words and not is_asked_for(subject, stuttered[0]):
        yield _salad_finding(subject, part, f"unrelated words are each repeated: {', '.join(stuttered[:5])}")
        return
    if subject.other is None or subject.is_finished:
        return
    share = _function_share(part.text)
    other = _function_share(subject.other.text)
    if share >= settings.function_word_share and other < share - 0.2:
        yield _salad_finding(subject, part, f"{share:.0%} of the words are function words")


def _salad_finding(subject: Subject, part: Part, message: str) -> Finding:
    return subject.finding(Family.GARBAGE, "word_salad", message, place=part.place, span=(0, len(part.text)))


def _function_share(text: str) -> float:
    """Share of English function words; 0.0 for a few words, or for a loop, which is another family's."""
    words = [word.lower() for word in _WORD.findall(text)]
    if len(words) < _SALAD_MIN_WORDS or len(set(words)) < _SALAD_MIN_DISTINCT * len(words):
        return 0.0
    return sum(word in _FUNCTION_WORDS for word in words) / len(words)


def _is_quoted(text: str, start: int) -> bool:
    """Whether a token stands in a code span: then it is being talked about."""
    before = text[max(0, start - 200) : start]
    return before.rpartition("\n")[2].count("`") % 2 == 1
