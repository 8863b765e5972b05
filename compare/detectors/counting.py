"""Loops that are not exact: copies that differ in numbers, that nest, or that come in changing order.

Honest lists and records count, too. So these are judged only at the end of an answer that the model did
not finish, and anything but prose only where the other side finished and does not count as long.
"""

from __future__ import annotations

import re

from compare.detectors.periods import Run, Shape, find_runs
from compare.detectors.subject import Part, Subject, shorten
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_DIGITS = re.compile(r"[0-9]+")
_SPACES = re.compile(r"[ \t]+")
_LETTER = re.compile(r"[^\W\d_]")
_NO_PROSE = frozenset('|"{}=<>')
_RECORD = re.compile(r"\d[:/\-]\d|[^\s,;@][,;@][^\s,;@]|\t")
_MARKS = re.compile(r'["\\]|[\[{(]|[\]})]')
_LINE_END = re.compile(r"\n+|(?<=[.!?\u3002\uff01\uff1f])\s+")
_MIN_LINE = 8


def detect_counting(subject: Subject, part: Part, settings: DetectorSettings) -> Finding | None:
    """Return a `counting_loop`, `nesting_loop` or `few_lines`, or None."""
    if subject.is_finished or len(part.text) < settings.closed_loop_min_characters:
        return None
    return _masked_loop(subject, part, settings) or _few_lines(subject, part, settings)


def visible_end(text: str) -> int:
    """Where the text ends without the rubble of a cut: white space and replacement characters.

    An answer of white space only ends where it ends.
    """
    return len(text.rstrip(" \t\r\n\ufffd")) or len(text)


def mask(text: str) -> str:
    """Write every number as 0 and every run of blanks as one: what counts up or indents repeats itself."""
    return _SPACES.sub(" ", _DIGITS.sub("0", text))


def _masked_loop(subject: Subject, part: Part, settings: DetectorSettings) -> Finding | None:
    masked = mask(part.text)
    if masked == part.text:
        return None
    shape = Shape(
        max_period=settings.loop_max_period_characters,
        min_repeats=settings.counting_loop_min_repeats,
        min_length=settings.counting_loop_min_characters,
        long_period=settings.loop_max_period_characters,
        long_repeats=settings.counting_loop_min_repeats,
    )
    end = visible_end(masked)
    for run in find_runs(masked, shape):
        unit = masked[run.start : run.start + run.period]
        if run.end < end or not _LETTER.search(unit):
            continue
        if _nests(unit):
            code, said = "nesting_loop", "each inside the one before"
        elif _is_prose(unit) or (subject.other_finished and subject.is_limited):
            code, said = "counting_loop", "with changing numbers only"
        else:
            continue
        if _is_excused(subject, run, unit, settings):
            continue
        return subject.finding(
            Family.REPETITION,
            code,
            f"{shorten(unit)} comes {run.repeats:.1f} times in a row, {said}",
            place=part.place,
            span=(_unmasked(part.text, masked, run.start), len(part.text)),
            measured=run.repeats,
            threshold=float(settings.counting_loop_min_repeats),
        )
    return None


def _is_prose(unit: str) -> bool:
    if any(mark in _NO_PROSE for mark in unit) or _RECORD.search(unit):
        return False
    return len(_LETTER.findall(unit)) >= len(unit) / 2


def _nests(unit: str) -> bool:
    """Whether the unit opens more brackets than it closes, whatever rotation of it was found."""
    depth = 0
    for mark in _MARKS.findall(unit):
        depth += (mark in "[{(") - (mark in "]})")
    return depth > 0


def _is_excused(subject: Subject, run: Run, unit: str, settings: DetectorSettings) -> bool:
    """Whether the other side counts at least half as long, or alone the prompt asks for it."""
    other = subject.other_answer
    if other is None:
        return subject.request.asks_repetition
    limit = max(settings.counting_loop_min_repeats, run.repeats / 2)
    return any(mask(part.text).count(unit) >= limit for part in other.parts)


def _few_lines(subject: Subject, part: Part, settings: DetectorSettings) -> Finding | None:
    """Find an unfinished end of few distinct lines or sentences in changing order."""
    if subject.request.asks_repetition and subject.other_answer is None:
        return None
    share = _distinct_share(part.text, settings)
    if share is None or share > settings.few_lines_distinct_share:
        return None
    if subject.other_answer is not None:
        shares = [_distinct_share(other.text, settings) for other in subject.other_answer.parts]
        if any(other is not None and other <= 2 * share for other in shares):
            return None
    return subject.finding(
        Family.REPETITION,
        "few_lines",
        f"of the last {settings.few_lines_window} lines or sentences {share:.0%} are distinct",
        place=part.place,
        span=(0, len(part.text)),
        measured=share,
        threshold=settings.few_lines_distinct_share,
    )


def _distinct_share(text: str, settings: DetectorSettings) -> float | None:
    """Share of distinct ones among the last lines and sentences of prose, None if there are few.

    The last one is left out: the limit cut it.
    """
    tail = text[-256 * settings.few_lines_window :]
    lines = [mask(line).strip() for line in _LINE_END.split(tail)]
    lines = [line for line in lines if len(line) >= _MIN_LINE and _is_prose(line)][:-1]
    lines = lines[-settings.few_lines_window :]
    if len(lines) < settings.few_lines_window:
        return None
    return len(set(lines)) / len(lines)


def _unmasked(text: str, masked: str, masked_index: int) -> int:
    """Turn an index into the masked text into one into the original, to within a number or a blank."""
    if masked_index == 0:
        return 0
    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        if len(mask(text[:middle])) < masked_index:
            low = middle + 1
        else:
            high = middle
    return low
