"""Family `repetition`: loops of any period, in characters and in tokens.

The kind that hurts never ends: it runs into the token limit. Such a *runaway* is judged by few
copies. A repetition that the model closed by itself (a refrain, a table, a row of zeros) is judged
by many, and only where its unit is not one that honest text repeats.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from operator import eq

from compare.detectors.asked import is_asked_for, other_side_repeats
from compare.detectors.closing import closes_what_was_opened, opens_what_is_closed
from compare.detectors.counting import detect_counting, visible_end
from compare.detectors.periods import Run, Shape, as_symbols, find_runs
from compare.detectors.subject import Part, Subject, shorten
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_DIGITS = re.compile(r"[0-9]+")
_MOST_NESTED = 8
"""Runs that are looked at more closely: each look takes time in proportion to the text."""
_BLANKS = re.compile(r"\s{32,}+")
# Rules, borders, bars, zeros and closing brackets: honest text repeats them and stops.
_DRAWING = re.compile(
    r"[\s\d\-=_*~+.|:/\\#<>\[\](){};,\"'`\u2010-\u2015\u2022\u2026\u2190-\u21ff\u2500-\u27bf\ufe0f\U0001f000-\U0001faff]+"
)


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `loop` (characters), `token_loop`, those of `counting`, `stutter` and `repeated_calls`."""
    if not subject.has_text_to_judge:
        return
    yield from _repeated_calls(subject, settings)
    found = False
    for part in subject.parts:
        finding = (
            _loop(subject, part, settings)
            or _blank_run(subject, part, settings)
            or detect_counting(subject, part, settings)
            or _stutter(subject, part, settings)
        )
        if finding is not None:
            found = True
            yield finding
    if not found and (finding := _token_loop(subject, settings)) is not None:
        yield finding


def runs_away(subject: Subject, settings: DetectorSettings) -> bool:
    """Whether the answer loops: other families ask this to tell a cause from its consequence."""
    return any(finding.is_fault for finding in detect(subject, settings))


def _loop(subject: Subject, part: Part, settings: DetectorSettings) -> Finding | None:
    shape = Shape(
        max_period=settings.loop_max_period_characters,
        min_repeats=settings.loop_min_repeats,
        min_length=settings.loop_min_characters,
        long_period=settings.loop_long_unit_characters,
        long_repeats=settings.loop_long_unit_repeats,
    )
    end = visible_end(part.text)
    runs = find_runs(part.text, shape)
    judged = ((_judge(subject, part, run, run.end >= end, settings), run) for run in runs)
    found = [(finding, run) for finding, run in judged if finding is not None]
    found.sort(key=lambda one: one[0].measured or 0.0, reverse=True)
    return next((finding for finding, run in found[:_MOST_NESTED] if not _is_nested(part.text, run)), None)


def _is_nested(text: str, run: Run) -> bool:
    """Whether the run opens what is closed later, or closes what was opened: no loop, however long."""
    return closes_what_was_opened(text, *run) or opens_what_is_closed(text, run.start, run.end)


def _blank_run(subject: Subject, part: Part, settings: DetectorSettings) -> Finding | None:
    """Find blanks without end or period: a grammar allows them anywhere, and where all else is masked ..."""
    if part.text.isspace() or not (part.text[-1:].isspace() or part.text.lstrip()[:1] in ("{", "[")):
        return None
    for match in _BLANKS.finditer(part.text):
        is_at_end = match.end() == len(part.text) and not subject.is_finished
        least = settings.blank_run_characters if is_at_end else settings.closed_loop_min_characters
        length = match.end() - match.start()
        if length >= least and not is_asked_for(subject, match.group()[:32]):
            return subject.finding(
                Family.REPETITION,
                "blank_run",
                f"{length} blanks in a row" + (" at the unfinished end" if is_at_end else ""),
                place=part.place,
                span=match.span(),
                measured=float(length),
                threshold=float(least),
            )
    return None


def _judge(
    subject: Subject, part: Part, run: Run, is_at_end: bool, settings: DetectorSettings
) -> Finding | None:
    unit = part.text[run.start : run.start + run.period]
    is_drawing = _DRAWING.fullmatch(unit) is not None
    if is_at_end and not subject.is_finished:
        threshold = _runaway_threshold(unit, is_drawing, settings)
        excused = is_asked_for(subject, unit) and (subject.other is None or other_side_repeats(subject, unit))
        state = "runs to the end of an answer that was not finished"
    else:
        threshold = _closed_threshold(unit, is_drawing, is_at_end, run.start == 0, settings)
        if is_at_end and not is_drawing and subject.other_finished and "\n" not in unit:
            # The other side answered the same request without it: fewer copies tell.
            threshold = _runaway_threshold(unit, is_drawing, settings)
        excused = is_asked_for(subject, unit) or other_side_repeats(subject, unit)
        state = "at the end of the answer" if is_at_end else "inside the answer"
    repeats_needed, length_needed = threshold
    if excused or run.repeats < repeats_needed or run.length < length_needed:
        return None
    return subject.finding(
        Family.REPETITION,
        "loop",
        f"{shorten(unit)} comes {run.repeats:.1f} times in a row, {run.length} characters, {state}",
        place=part.place,
        span=(run.start, run.end),
        measured=float(run.length),
        threshold=float(max(length_needed, repeats_needed * run.period)),
    )


def _runaway_threshold(unit: str, is_drawing: bool, settings: DetectorSettings) -> tuple[float, int]:
    """Copies and characters from which a repetition at an unfinished end is a loop."""
    if len(unit) >= settings.loop_long_unit_characters:
        return settings.loop_long_unit_repeats, settings.loop_min_characters
    if is_drawing and not unit.isdigit() and len(set(unit)) > 1:
        # A table's rule or padding may be what the limit happened to cut.
        return settings.closed_loop_min_repeats, settings.drawing_min_characters
    return settings.loop_min_repeats, settings.loop_min_characters


def _closed_threshold(
    unit: str, is_drawing: bool, is_at_end: bool, is_whole: bool, settings: DetectorSettings
) -> tuple[float, int]:
    """Copies and characters from which a repetition is a loop although the model went on or ended."""
    if is_drawing:
        # Only if nothing else was said: forty '#' as the whole answer are no heading.
        if is_whole and is_at_end and not _DIGITS.search(unit) and not unit.isspace():
            return settings.closed_loop_min_repeats, settings.drawing_min_characters
        return float("inf"), 0
    if is_at_end and "\n" not in unit:
        return settings.closed_loop_min_repeats, settings.loop_min_characters
    return settings.closed_loop_min_repeats, settings.closed_loop_min_characters


def _stutter(subject: Subject, part: Part, settings: DetectorSettings) -> Finding | None:
    """Find several different words that each come three or more times in a row."""
    words = stuttered_words(part, settings)
    if len(words) < settings.stutter_min_words or is_asked_for(subject, words[0]):
        return None
    return subject.finding(
        Family.REPETITION,
        "stutter",
        f"{len(words)} different words are each repeated in a row, {shorten(', '.join(words))}",
        place=part.place,
        span=(0, len(part.text)),
        measured=float(len(words)),
        threshold=float(settings.stutter_min_words),
    )


def _repeated_calls(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Find the same tool call over and over in one answer."""
    calls = Counter((call.name, call.arguments) for call in subject.observation.tool_calls)
    for (name, arguments), count in calls.most_common(1):
        if count >= settings.repetition_times:
            yield subject.finding(
                Family.REPETITION,
                "repeated_calls",
                f"the call {shorten(name)} with {shorten(arguments)} is made {count} times",
                measured=float(count),
                threshold=float(settings.repetition_times),
            )


def stuttered_words(part: Part, settings: DetectorSettings) -> list[str]:
    """Distinct words with letters that come `repetition_times` or more times in a row, in order."""
    words = part.pieces
    times = settings.repetition_times
    if not any(map(eq, words, words[1:])):
        return []
    in_a_row = zip(*(words[start:] for start in range(times)), strict=False)
    repeated = [group[0] for group in in_a_row if group[0] == group[-1] and len(set(group)) == 1]
    return [word for word in dict.fromkeys(repeated) if len(word) > 1 and word.isalpha()]


def _token_loop(subject: Subject, settings: DetectorSettings) -> Finding | None:
    """Apply the field's rule where the tokens are known.

    A block of at least `repetition_ngram` tokens comes `repetition_times` times in a row, all within
    `repetition_window_tokens`, and the answer breaks off in it. In closed answers the rule would
    flag every list of three equal lines. Longer blocks need `loop_long_unit_repeats` copies.
    """
    tokens = subject.observation.tokens
    shortest = settings.repetition_ngram * settings.repetition_times
    if subject.is_finished or len(tokens) < shortest:
        return None
    symbols = as_symbols(subject.answer.names)
    shape = Shape(
        max_period=settings.loop_max_period_tokens,
        min_repeats=settings.repetition_times,
        min_length=shortest,
        long_period=settings.repetition_window_tokens // settings.repetition_times,
        long_repeats=settings.loop_long_unit_repeats,
        grams=(settings.repetition_ngram, 16, 64, 256),
        stride=2,
    )
    for run in find_runs(symbols, shape):
        unit = "".join(tokens.texts[run.start : run.start + run.period])
        if run.end < len(tokens) or _DRAWING.fullmatch(unit) and not unit.isdigit():
            continue
        if is_asked_for(subject, unit) and (subject.other is None or other_side_repeats(subject, unit)):
            continue
        return subject.finding(
            Family.REPETITION,
            "token_loop",
            f"{run.period} tokens {shorten(unit)} come {run.repeats:.1f} times at the unfinished end",
            place="tokens",
            span=(run.start, run.end),
            measured=run.repeats,
            threshold=float(shape.min_repeats if run.period < shape.long_period else shape.long_repeats),
        )
    return None
