"""Family `json`: the answer should be JSON and is not, or breaks its schema.

Free text is never held to JSON, with one exception: an answer that plainly begins as JSON, was
never finished or cannot be read. Invalid JSON that the request's own limit cut is the limit's
doing, unless the answer loops: then it would never have been closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compare.detectors.json_diagnosis import Diagnosis, diagnose, schema_violations
from compare.detectors.repetition import runs_away
from compare.detectors.subject import Subject
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_BEGINS_JSON = re.compile(r"\s*(?:\{\s*\"[^\"\n]*\"\s*:|\[\s*[\[{])")
_THINKING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield one of the codes of `json_diagnosis.diagnose`, or `schema_invalid` with the first paths."""
    observation = subject.observation
    text = observation.text
    if not text.strip() or observation.failure is not None or observation.tool_calls:
        return
    asked = subject.expected is not None and subject.expected.kind is not None
    if not asked and not _BEGINS_JSON.match(text):
        return
    shift = 0
    if match := _THINKING.match(text):
        shift = match.end()
    diagnosis = diagnose(text[shift:])
    if diagnosis.code and (asked or diagnosis.code in ("cut", "not_json")):
        yield _broken(subject, diagnosis, shift, settings, asked=asked)
    if asked and diagnosis.has_value:
        yield from _against_schema(subject, diagnosis.value)


def _broken(
    subject: Subject, diagnosis: Diagnosis, shift: int, settings: DetectorSettings, *, asked: bool
) -> Finding:
    is_own_limit = (
        subject.is_limited and subject.reached_limit is not False and subject.token_limit is not None
    )
    is_fault = asked or diagnosis.code == "cut"
    if diagnosis.code == "cut" and is_own_limit:
        is_fault = runs_away(subject, settings)
    end = len(subject.observation.text)
    start = min(shift + diagnosis.position, end)
    if start == end:
        start = max(0, end - 1)
    return subject.finding(
        Family.JSON,
        diagnosis.code,
        f"the answer should be JSON: {diagnosis.message}",
        place="text",
        span=(start, min(end, start + 1)),
        is_fault=is_fault,
    )


def _against_schema(subject: Subject, value: object) -> Iterable[Finding]:
    schema = subject.expected.schema if subject.expected is not None else None
    if schema is None:
        return
    violations = schema_violations(value, schema)
    if violations:
        listed = "; ".join(f"{path}: {message[:120]}" for path, message in violations)
        yield subject.finding(
            Family.JSON,
            "schema_invalid",
            f"the JSON breaks its schema ({subject.expected.source if subject.expected else ''}) at {listed}",
            place="text",
            span=(0, len(subject.observation.text)),
            measured=float(len(violations)),
        )
