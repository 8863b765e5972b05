"""Runs every detector on one observation or on both sides of a pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compare.detectors import (
    empty,
    garbage,
    json_structure,
    language,
    logits,
    logprobs_format,
    repetition,
    request_faults,
    sse,
    toolcall,
    truncation,
    utf8,
)
from compare.detectors.echoed import put_back, without_echo
from compare.detectors.facts import AnswerFacts, RequestFacts
from compare.detectors.history import HISTORY_FAULTY, is_history_faulty
from compare.detectors.subject import Shared, Subject
from compare.result import Finding
from ingest.pair import ResponsePair
from ingest.request import ExpectedStructure
from ingest.settings import DetectorSettings

Detector = Callable[[Subject, DetectorSettings], Iterable[Finding]]
"""A pure function: same subject and settings, same findings. It never raises on anything in an answer
and its work is linear in the answer's length."""

DETECTORS: tuple[Detector, ...] = (
    logits.detect,
    logprobs_format.detect,
    repetition.detect,
    garbage.detect,
    truncation.detect,
    utf8.detect,
    sse.detect,
    json_structure.detect,
    toolcall.detect,
    empty.detect,
    language.detect,
    request_faults.detect,
)


def detect(subject: Subject, settings: DetectorSettings) -> tuple[Finding, ...]:
    """Return what every detector finds on one side, in the order of DETECTORS.

    A prompt that the request wants back is no part of what is judged.
    """
    generated, echo = without_echo(subject)
    found = tuple(finding for detector in DETECTORS for finding in detector(generated, settings))
    if generated is subject:
        return found
    # How the prompt's tokens are written down is the server's doing, too.
    found = tuple(put_back(finding, echo) for finding in found if finding.code != "misspelt")
    return (*found, *logprobs_format.detect_misspelt(subject))


def detect_pair(
    pair: ResponsePair, settings: DetectorSettings, expected: ExpectedStructure | None
) -> tuple[Finding, ...]:
    """Return the findings of both sides, the reference's first, each judged in sight of the other.

    Faults of the request are looked for in the request as the client sent it, and said on the candidate.
    """
    request = RequestFacts(pair.candidate_body)
    reference, candidate = AnswerFacts(pair.reference), AnswerFacts(pair.candidate)
    sides = (
        Subject(
            pair.reference,
            "reference",
            pair.reference_body,
            pair.candidate,
            expected,
            pair.vocabulary_size,
            shared=Shared(request, reference, candidate),
        ),
        Subject(
            pair.candidate,
            "candidate",
            pair.candidate_body,
            pair.reference,
            expected,
            pair.vocabulary_size,
            pair.mirrored.body,
            Shared(request, candidate, reference),
        ),
    )
    return tuple(finding for side in sides for finding in detect(side, settings))


def tags_of(pair: ResponsePair, settings: DetectorSettings) -> tuple[str, ...]:
    """Return what is known of the pair's request before any answer: `history_faulty`."""
    return (HISTORY_FAULTY,) if is_history_faulty(pair.mirrored.body, settings) else ()
