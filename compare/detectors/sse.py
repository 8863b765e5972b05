"""Family `sse`: the transport broke the answer, or left out how it ended."""

from __future__ import annotations

from collections.abc import Iterable

from compare.detectors.subject import Subject, shorten
from compare.result import Family, Finding
from ingest.answer import STREAM_WITHOUT_CHOICES, UNREADABLE_EVENT
from ingest.observation import FailureKind
from ingest.settings import DetectorSettings

_STALLS = (FailureKind.FIRST_TOKEN_TIMEOUT, FailureKind.IDLE_TIMEOUT, FailureKind.TOTAL_TIMEOUT)
_UNREADABLE_STREAM = (UNREADABLE_EVENT, STREAM_WITHOUT_CHOICES)
_BROKEN_NOTES = (
    "unreadable_event",
    "lost_after_finish",
    "data_prefix_doubled",
    "events_not_separated",
    "text_restarted",
    "json_joined",
)


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `cut_stream`, `error_in_answer`, `stalled`, `unreadable_stream`, `no_finish_reason`, ..."""
    observation = subject.observation
    failure = observation.failure
    if failure is None:
        if observation.finish_reason is None and (observation.text or observation.tool_calls):
            # The text is whole; only how it ended is unknown, and that is no difference of the model's.
            yield subject.finding(
                Family.SSE,
                "no_finish_reason",
                "the answer came to its end without a finish reason",
                is_fault=False,
            )
        for note in _BROKEN_NOTES:
            if note in observation.notes:
                yield subject.finding(
                    Family.SSE, "broken_events", f"the stream was read with {note}", is_fault=False
                )
    elif failure.kind is FailureKind.CUT_STREAM:
        yield subject.finding(
            Family.SSE, "cut_stream", f"the stream broke off: {shorten(failure.message, 80)}"
        )
    elif failure.kind is FailureKind.ERROR_IN_STREAM:
        yield subject.finding(
            Family.SSE,
            "error_in_answer",
            f"the server answers 200 with an error: {shorten(failure.message, 80)}",
        )
    elif failure.kind is FailureKind.UNREADABLE and failure.message in _UNREADABLE_STREAM:
        yield subject.finding(
            Family.SSE, "unreadable_stream", f"the server answers 200, and {failure.message}"
        )
    elif failure.kind in _STALLS:
        yield subject.finding(Family.SSE, "stalled", f"no answer in time ({failure.kind})")
