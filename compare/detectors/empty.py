"""Family `empty`: nothing was said, or nothing but the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compare.detectors.subject import Subject, shorten
from compare.result import Family, Finding
from ingest.observation import FailureKind
from ingest.settings import DetectorSettings

_ECHO_MIN_CHARACTERS = 12  # "yes" answered to "yes" is no echo
_HEAD_CHARACTERS = 256
_VISIBLE = re.compile(
    "[^\\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0]"
)
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)|</?think(?:ing)?>", re.DOTALL)
_ROLE = re.compile(r"^(?:<\|[a-z_]+\|>|user|assistant|human|question|q|prompt)\s*[:\n>]\s*", re.IGNORECASE)
_ASKS_ECHO = re.compile(
    r"\b(?:repeat|echo|verbatim|copy|quote|proofread|correct|spell|grammar|fix|format|rewrite|as is|unchanged"
    r"|say exactly|respond with exactly|transcribe)\b|重复|复述",
    re.IGNORECASE,
)


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `empty`, `blank`, `swallowed`, `thinking_only` or `echo`."""
    observation = subject.observation
    failure = observation.failure
    if failure is not None and not (failure.kind is FailureKind.CUT_STREAM and _began(subject)):
        return  # an error, a hang or a refused call is no empty answer
    if observation.tool_calls or subject.asks_for_nothing:
        return
    text = observation.text
    said = _THINKING.sub("", text) if "think" in text else text
    if _VISIBLE.search(said):
        yield from _echo(subject, said)
        return
    tokens = observation.completion_tokens or len(observation.tokens)
    if observation.reasoning.strip() or (said != text and _VISIBLE.search(text)):
        yield subject.finding(
            Family.EMPTY,
            "thinking_only",
            "the answer is empty after reasoning"
            + (" that used up the token limit" if subject.is_own_limit else ""),
            is_fault=not subject.is_own_limit,
        )
    elif text:
        yield subject.finding(
            Family.EMPTY,
            "blank",
            f"the answer is {len(text)} characters that show nothing",
            place="text",
            span=(0, len(text)),
            measured=float(len(text)),
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


def _echo(subject: Subject, said: str) -> Iterable[Finding]:
    """Find an answer that is a message of the request (or that several times) and no more."""
    if subject.body.get("echo"):
        return
    head = _plain(said[:_HEAD_CHARACTERS])[:_ECHO_MIN_CHARACTERS]
    messages = [text for role, text in subject.request.messages if role == "system"]
    asked = [
        plain
        for text in (subject.last_user_text, *messages)
        if len(head) == _ECHO_MIN_CHARACTERS
        and _plain(text[:_HEAD_CHARACTERS]).startswith(head)
        and len(plain := _plain(text)) >= _ECHO_MIN_CHARACTERS
    ]
    answer = _plain(said) if asked else ""
    echoed = next((text for text in asked if _is_made_of(answer, text)), None)
    if echoed is None or _ASKS_ECHO.search(subject.prompt):
        return
    if subject.other is not None and _plain(subject.other.text) == answer:
        return  # where both sides repeat it, that was the task
    yield subject.finding(
        Family.EMPTY,
        "echo",
        f"the answer is the prompt itself: {shorten(echoed)}",
        place="text",
        span=(0, len(subject.observation.text)),
    )


def _is_made_of(answer: str, text: str) -> bool:
    """Whether the answer is `text` once or several times, the last perhaps cut."""
    if not answer.startswith(text):
        return False
    unit = text + " "
    copies = len(answer) // len(unit) + 1
    return (unit * copies)[: len(answer)] == answer


def _plain(text: str) -> str:
    return " ".join(_ROLE.sub("", text.strip()).split()).strip("\"'` ")
