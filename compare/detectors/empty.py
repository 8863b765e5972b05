"""Family `empty`: nothing was said, or nothing but the prompt."""

from __future__ import annotations

from collections.abc import Iterable

from compare.detectors.subject import Subject, shorten
from compare.result import Family, Finding
from ingest.observation import FailureKind
from ingest.settings import DetectorSettings

_ECHO_MIN_CHARACTERS = 12  # "yes" answered to "yes" is no echo


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `empty`, `blank`, `swallowed`, `thinking_only` or `echo`."""
    observation = subject.observation
    failure = observation.failure
    if failure is not None and not (failure.kind is FailureKind.CUT_STREAM and _began(subject)):
        return  # an error, a hang or a refused call is no empty answer
    if observation.tool_calls:
        return
    text = observation.text
    if text.strip():
        yield from _echo(subject)
        return
    tokens = observation.completion_tokens or len(observation.tokens)
    if text:
        yield subject.finding(
            Family.EMPTY,
            "blank",
            f"the answer is {len(text)} characters of white space",
            place="text",
            span=(0, len(text)),
            measured=float(len(text)),
        )
    elif observation.reasoning.strip():
        is_own_limit = subject.is_limited and subject.reached_limit is not False
        yield subject.finding(
            Family.EMPTY,
            "thinking_only",
            "the answer is empty after reasoning" + (" that used up the token limit" if is_own_limit else ""),
            is_fault=not is_own_limit,
        )
    elif tokens > 1:
        # One token is the end mark itself.
        yield subject.finding(
            Family.EMPTY,
            "swallowed",
            f"the answer is empty although {tokens} tokens were generated",
            measured=float(tokens),
            threshold=1.0,
        )
    else:
        yield subject.finding(Family.EMPTY, "empty", "the answer is empty")


def _began(subject: Subject) -> bool:
    """Whether a broken stream had begun to answer: its first piece names the model."""
    observation = subject.observation
    return observation.reported_model is not None and not subject.parts


def _echo(subject: Subject) -> Iterable[Finding]:
    text = subject.observation.text
    asked = subject.last_user_text.strip()
    if len(asked) < _ECHO_MIN_CHARACTERS or text.strip() != asked:
        return
    if subject.other is not None and subject.other.text.strip() == asked:
        return  # both sides chose to repeat it: that was the task
    yield subject.finding(
        Family.EMPTY,
        "echo",
        f"the answer is the prompt itself: {shorten(asked)}",
        place="text",
        span=(0, len(text)),
    )
