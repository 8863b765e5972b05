"""Family `json`: the answer should be JSON and is not, or breaks its schema.

JSON is asked for by the request's structure, or in the prompt's words with the other side or the
answer itself beginning as JSON. Free text is never held to JSON, with one exception: an answer that
plainly begins as JSON, was never finished or cannot be read. Invalid JSON that the request's own limit
cut is the limit's doing, unless the answer loops: then it would never have been closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compare.detectors.json_diagnosis import Diagnosis, diagnose, is_json_lines
from compare.detectors.json_schema import Violation, schema_violations
from compare.detectors.repetition import runs_away
from compare.detectors.subject import Subject
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_BEGINS_JSON = re.compile(r"\s*(?:```(?:json)?\s*)?(?:\{\s*[\"'}\u201c\w]|\[\s*[\[{\"\d])")
_PLAINLY_JSON = re.compile(r"\s*(?:\{\s*\"[^\"\n]*\"\s*:|\[\s*[\[{])")
_WANTS_JSON = re.compile(
    r"\b(?:nd-?|ld)?json(?:l|[- ]lines)?\b(?! web token| schema validat)"
    r"(?!\s*(?:parser|library|vs|versus|or\b|and\b))",
    re.IGNORECASE,
)
_WANTS_ONLY = re.compile(
    r"\b(?:only|just|nothing else|no (?:other |extra )?(?:text|prose|markdown|fences?|commentary|explanation)"
    r"|raw|valid|strictly|must be)\b",
    re.IGNORECASE,
)
_WANTS_LINES = re.compile(
    r"\bnd-?json\b|\bjson[- ]?l(?:ines?)?\b|\bldjson\b|(?:newline|line)[- ](?:delimited|separated)"
    r"|\b(?:object|record|entry|document|event|item|row|json|line|value)s? (?:per|a|on each|on every|for each"
    r"|in each|on its own|on separate|on one|to a) (?:\w+ )?lines?\b"
    r"|\b(?:each|every|one) (?:\w+ ){1,4}on (?:its own|an?|one)(?: \w+)? line\b|\b(?:each|every) line\b",
    re.IGNORECASE,
)
_WANTS_MANY = re.compile(
    r"\bjson (?:objects|records|documents|values|entries|messages|events|logs?)\b", re.IGNORECASE
)
_FENCED = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_THINKING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_STRAY = ("cut", "not_json", "concatenated", "missing_comma", "extra_closing")
"""What no free text does by itself: an answer that begins as JSON and then fails."""


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield one of the codes of `json_diagnosis.diagnose`, or those of `json_schema` with the first paths."""
    observation = subject.observation
    text = observation.text
    if not text.strip() or observation.failure is not None or observation.tool_calls:
        return
    asked = subject.expected is not None and subject.expected.kind is not None
    softly = not asked and _is_asked_in_words(subject)
    if not asked and not softly and not _PLAINLY_JSON.match(text):
        return
    shift = 0
    if match := _THINKING.match(text):
        shift = match.end()
    diagnosis = diagnose(text[shift:]) if shift else subject.answer.diagnosis
    if diagnosis.code and not asked:
        diagnosis = _as_lines(subject, text[shift:], diagnosis, softly=softly)
    if diagnosis.code and (asked or diagnosis.code in _STRAY or (softly and _is_told(subject, diagnosis))):
        yield _broken(subject, diagnosis, shift, settings, asked=asked or softly)
    if asked and diagnosis.has_value:
        yield from _against_schema(subject, diagnosis.value)


def _is_asked_in_words(subject: Subject) -> bool:
    """Whether the prompt wants JSON and the answer, or the other side's, is meant as such."""
    if not _WANTS_JSON.search(subject.prompt):
        return False
    if _BEGINS_JSON.match(subject.observation.text):
        return True
    other = subject.other_answer
    is_only = _WANTS_ONLY.search(subject.prompt) is not None
    return is_only and other is not None and _is_container(other.observation.text)


def _as_lines(subject: Subject, text: str, whole: Diagnosis, *, softly: bool) -> Diagnosis:
    """Judge JSON Lines line by line: where they were asked for, or nobody wanted one JSON value.

    Without the word for it, several different values, each whole on its line, are lines.
    """
    fence = _FENCED.fullmatch(text.strip())
    lines = [line for line in (fence[1] if fence else text).splitlines() if line.strip()]
    if len(lines) < 2 or lines[0].lstrip()[:1] not in ("{", "["):
        return whole
    is_wanted = _WANTS_LINES.search(subject.prompt) is not None
    for line in lines:
        found = diagnose(line)
        if found.code:
            at = text.find(line) + found.position
            return found._replace(position=at) if is_wanted and not fence else whole
    is_many = not softly or _WANTS_MANY.search(subject.prompt) is not None
    if not is_wanted and not (is_many and len(set(lines)) == len(lines)) and not _other_has_lines(subject):
        return whole
    if fence:
        return Diagnosis(
            "fenced", "the JSON stands in a Markdown fence", None, False, 0, "take the fence away"
        )
    return Diagnosis("", "", None, False, 0)


def _other_has_lines(subject: Subject) -> bool:
    """Whether the other side, too, has one value a line."""
    other = subject.other_answer
    return other is not None and is_json_lines(other.observation.text)


def _is_container(text: str) -> bool:
    """Whether a text is a JSON object or array; a quoted sentence is JSON too, but hardly meant as such."""
    return text.lstrip()[:1] in ("{", "[") and diagnose(text).code == ""


def _is_told(subject: Subject, diagnosis: Diagnosis) -> bool:
    """Whether the prompt's words forbid a fence or prose, or the other side does without."""
    if diagnosis.code not in ("fenced", "prose_around"):
        return True
    other = subject.other_answer
    if other is not None:
        return _is_container(other.observation.text)
    return _WANTS_ONLY.search(subject.prompt) is not None


def _broken(
    subject: Subject, diagnosis: Diagnosis, shift: int, settings: DetectorSettings, *, asked: bool
) -> Finding:
    is_fault = asked or diagnosis.code == "cut"
    if diagnosis.code == "cut" and subject.is_own_limit:
        is_fault = runs_away(subject, settings)
    end = len(subject.observation.text)
    start = min(shift + diagnosis.position, end)
    if start == end:
        start = max(0, end - 1)
    return subject.finding(
        Family.JSON,
        diagnosis.code,
        f"the answer should be JSON: {diagnosis.said}",
        place="text",
        span=(start, min(end, start + 1)),
        is_fault=is_fault,
    )


def _against_schema(subject: Subject, value: object) -> Iterable[Finding]:
    expected = subject.expected
    if expected is None or expected.schema is None:
        return
    if isinstance(value, str) and diagnose(value).code == "" and value.lstrip()[:1] in ("{", "["):
        yield _whole(
            subject, "double_encoded", "the JSON is a string that holds JSON (repairable: decode it)", 1
        )
        return
    by_code: dict[str, list[Violation]] = {}
    for violation in schema_violations(value, expected.schema):
        by_code.setdefault(violation.code, []).append(violation)
    for code, violations in by_code.items():
        listed = "; ".join(f"{found.path}: {found.message[:120]}" for found in violations)
        repair = "repairable: drop the keys" if code == "schema_extra_key" else "not repairable"
        message = f"the JSON breaks its schema ({expected.source}) at {listed} ({repair})"
        yield _whole(subject, code, message, len(violations))


def _whole(subject: Subject, code: str, message: str, measured: int) -> Finding:
    return subject.finding(
        Family.JSON,
        code,
        message,
        place="text",
        span=(0, len(subject.observation.text)),
        measured=float(measured),
    )
