"""Short ways to make subjects, and one question to ask of findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compare.detect import detect
from compare.detectors.subject import Subject
from compare.result import Finding
from ingest.alternative import Alternative
from ingest.observation import Observation
from ingest.request import expects_json
from ingest.settings import DetectorSettings
from ingest.tokens import Token, Tokens

SETTINGS = DetectorSettings()
IMPOSSIBLE = float("-inf")


def subject(
    text: str = "",
    *,
    prompt: str = "",
    finish: str | None = "stop",
    other: Observation | None = None,
    body: dict[str, Any] | None = None,
    tokens: Iterable[Token] = (),
    **more: Any,
) -> Subject:
    request = {"messages": [{"role": "user", "content": prompt}], **(body or {})}
    observation = Observation(text=text, finish_reason=finish, tokens=Tokens(tokens), **more)
    return Subject(observation, "candidate", request, other, expects_json(request))


def found(subject: Subject, settings: DetectorSettings = SETTINGS) -> dict[tuple[str, str], Finding]:
    """All findings by (family, code)."""
    return {(finding.family.value, finding.code): finding for finding in detect(subject, settings)}


def families(subject: Subject, settings: DetectorSettings = SETTINGS) -> set[str]:
    return {family for family, _ in found(subject, settings)}


def faults(subject: Subject) -> set[str]:
    return {family for (family, _), finding in found(subject).items() if finding.is_fault}


def token(text: str, logprob: float | None, *alternatives: float) -> Token:
    """A token whose list starts with itself (if it has a logprob) and goes on with `alternatives`."""
    own = [] if logprob is None else [logprob]
    top = tuple(Alternative(text if i == 0 else f"alt{i}", p) for i, p in enumerate([*own, *alternatives]))
    return Token(text, logprob, top=top, ranked=len(top))
