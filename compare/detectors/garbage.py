"""Family `garbage`: tokens that mean nothing, in text, reasoning and tool arguments.

Here: characters and names. `leaks` looks for what a tokenizer keeps for itself, `word_noise` at words.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

from compare.detectors.asked import is_asked_for
from compare.detectors.closing import closes_what_was_opened
from compare.detectors.facts import Part
from compare.detectors.json_diagnosis import is_json, is_json_lines
from compare.detectors.leaks import detect_leaks
from compare.detectors.odd_pieces import without_check_boxes
from compare.detectors.scripts import group_of
from compare.detectors.subject import Subject, shorten
from compare.detectors.word_noise import detect_words
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_FILL = re.compile(r"([^\s\d])\1{15,}")
_NAME = re.compile(r"\b\w{40,}")
_JOINED = re.compile(r"(?<![\w/.])[A-Za-z]+(?:[-.][A-Za-z]+){12,}")
_HUMP = re.compile(r"[A-Z]?[a-z]{2,}")
_JOINTS_MIN = 8
_RULES = frozenset("-=_*~.+|\u2014\u2015") | frozenset(chr(code) for code in range(0x2500, 0x25A0))
_BLOCK = re.compile("[\u2580-\u259f]")
_BLOCK_KINDS_MIN = 3
_SIGN = re.compile(
    "[!-/:-@\\[-`{-~\u2010-\u2027\u2030-\u205e\u3001-\u3003\u3008-\u301f\uff01-\uff0f\uff1a-\uff20]"
)
_ALPHANUMERIC = (string.ascii_letters + string.digits).encode()
_ASKS_SIGNS = re.compile(
    r"regex|regular expression|brainf|ascii|emoji|\bart\b|\bcode\b|punctuation|symbols?\b|operators?\b"
    r"|esolang|latex|formula|equation|kaomoji|emoticon|perl\b|\bapl\b|glyph",
    re.IGNORECASE,
)
_DRAWN = re.compile(r"([^\w\s]|_)\1{2,}")
_TABLE = re.compile(r"^\s*\|.*\|\s*$", re.MULTILINE)


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `reserved_tokens`, `fill`, `detokenizer_leak`, `control_characters`, `mixed_scripts`, ..."""
    if not subject.has_text_to_judge:
        return
    for part in subject.parts:
        yield from detect_leaks(subject, part, settings)
        # What is sought next has no space in it: most texts have no piece that long.
        longest = max(map(len, part.pieces), default=0)
        filled = list(_fill(subject, part, settings)) if longest >= settings.fill_min_characters else []
        yield from filled
        if longest >= settings.identifier_min_characters:
            yield from _identifier(subject, part, settings)
        if not filled:
            yield from _characters(subject, part, settings)
    yield from _mixed_scripts(subject, settings)
    yield from detect_words(subject, settings)


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
        if closes_what_was_opened(part.text, *match.span()):
            continue
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


def _identifier(subject: Subject, part: Part, settings: DetectorSettings) -> Iterable[Finding]:
    """Find one endless name of many words; base64 and hashes do not fall into words."""
    joints = part.text.count("-") + part.text.count(".")
    joined = _JOINED.finditer(part.text) if joints >= _JOINTS_MIN else ()
    for match in (*_NAME.finditer(part.text), *joined):
        name, length = match.group(), match.end() - match.start()
        if length < settings.identifier_min_characters or not _is_of_words(name) or name in subject.prompt:
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


def _is_of_words(name: str) -> bool:
    joints = max(name.count("_"), name.count("-"), name.count("."))
    if joints >= _JOINTS_MIN:
        return True
    humps = _HUMP.findall(name)
    # Words cover nearly all of a name, in pieces of about five letters; base64 breaks up into twos.
    return len(humps) >= _JOINTS_MIN and sum(map(len, humps)) >= max(0.9 * len(name), 4 * len(humps))


def _characters(subject: Subject, part: Part, settings: DetectorSettings) -> Iterable[Finding]:
    """Find text that is mostly block elements, replacement characters or signs."""
    text = part.text
    visible = len(text) - text.count(" ") - text.count("\n")
    if visible < settings.fill_min_characters:
        return
    if not text.isascii():
        blocks = _BLOCK.findall(text)
        # A bar is one sign, or two, and something is said beside it.
        if len(blocks) > settings.block_share * visible and _are_strewn(subject, blocks):
            share = len(blocks) / visible
            yield _share(subject, part, "block_elements", "block elements", share, settings.block_share)
        broken = text.count("\ufffd")
        if broken > settings.replacement_share * visible:
            share = broken / visible
            yield _share(
                subject,
                part,
                "replacement_noise",
                "replacement characters",
                share,
                settings.replacement_share,
            )
    if part.place == "text" and visible <= settings.punctuation_max_characters:
        yield from _signs(subject, part, settings)


def _are_strewn(subject: Subject, blocks: list[str]) -> bool:
    """Whether block elements are no bar, which has one kind or two, and were not asked for."""
    return len(set(blocks)) >= _BLOCK_KINDS_MIN and not subject.request.asks_repetition


def _signs(subject: Subject, part: Part, settings: DetectorSettings) -> Iterable[Finding]:
    """Find signs strewn about: neither drawn in runs, nor code, nor a table, nor what the other side says."""
    most, letters = _most_signs(subject, part.text)
    if most < settings.punctuation_share * settings.fill_min_characters:
        return
    # What is drawn counts neither as sign nor as visible, but letters stay.
    if most <= settings.punctuation_share * (most + letters):
        return
    strewn = _DRAWN.sub("", without_check_boxes(part.text))
    signs = len(_SIGN.findall(strewn))
    visible = len(strewn) - strewn.count(" ") - strewn.count("\n")
    if visible < settings.fill_min_characters or signs <= settings.punctuation_share * visible:
        return
    if "```" in part.text or _TABLE.search(part.text) or is_json(part.text) or is_json_lines(part.text):
        return
    other = subject.other.text if subject.other is not None else ""
    if len(_SIGN.findall(other)) > signs / 2 or subject.request.asks_repetition:
        return
    if _ASKS_SIGNS.search(subject.prompt):
        return
    yield _share(subject, part, "punctuation", "strewn signs", signs / visible, settings.punctuation_share)


def _most_signs(subject: Subject, text: str) -> tuple[int, int]:
    """No fewer than the text's signs, and no more than its letters and digits outside of check boxes."""
    visible = len(text) - text.count(" ") - text.count("\n")
    if text.isascii():
        letters = len(text) - len(text.encode().translate(None, _ALPHANUMERIC))
    else:
        letters = sum(subject.answer.letters.values())
    return visible - letters, letters - text.count("[x]") - text.count("[X]")


def _share(subject: Subject, part: Part, code: str, said: str, share: float, threshold: float) -> Finding:
    return subject.finding(
        Family.GARBAGE,
        code,
        f"{share:.0%} of the visible characters are {said}",
        place=part.place,
        span=(0, len(part.text)),
        measured=share,
        threshold=threshold,
    )


def _mixed_scripts(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    text = subject.observation.text
    if text.isascii():
        return
    known = set(subject.request.letters) | {"LATIN", "GREEK"} | subject.request.named_scripts
    if subject.other_answer is not None:
        known |= set(subject.other_answer.letters)
    # Chinese, Japanese and Korean letters count apart: noise has all of them.
    foreign = {name for name in subject.answer.letters if not group_of(name) & known}
    if len(foreign) + 1 < settings.noise_min_scripts or subject.request.is_about_languages:
        return
    yield subject.finding(
        Family.GARBAGE,
        "mixed_scripts",
        f"scripts that neither prompt nor other side use: {', '.join(sorted(foreign))}",
        place="text",
        span=(0, len(text)),
        measured=float(len(foreign) + 1),
        threshold=float(settings.noise_min_scripts),
    )
