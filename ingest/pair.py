"""A response pair: where `ingest` ends and `compare` starts."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from ingest.observation import Observation
from ingest.records import MirroredRequest
from ingest.reference_answers import ReferenceAnswer
from ingest.tokens import Tokens


class Mode(StrEnum):
    """How a request is replayed (design, section 4)."""

    GREEDY = "greedy"
    AS_SENT = "as_sent"
    MIRRORED = "mirrored"


class Forced(msgspec.Struct, frozen=True):
    """Teacher-forced positions, or why there are none (`unscored`).

    Both hold the reference's own tokens, position by position, each with its side's distribution there:
    `top` is that side's list and `logprob` what it gives the token, None if it is outside the list.
    """

    reference: Tokens = Tokens()
    candidate: Tokens = Tokens()
    unscored: str | None = None


class ReplayPlan(msgspec.Struct, frozen=True):
    """What was decided for one request before anything was sent.

    `changes` names what the replayed body differs in from the mirrored one, such as
    `temperature=0` or `max_tokens capped to 256`.
    """

    mode: Mode
    wants_noise: bool
    wants_candidate_noise: bool
    wants_forced: bool
    changes: tuple[str, ...] = ()


class ResponsePair(msgspec.Struct, frozen=True, kw_only=True):
    """The reference observation and the candidate observation of one mirrored request."""

    mirrored: MirroredRequest
    experiment: str
    reference_name: str
    candidate_name: str
    reference_body: dict[str, Any]
    candidate_body: dict[str, Any]
    plan: ReplayPlan
    reference: Observation
    candidate: Observation
    reference_again: Observation | None = None
    candidate_again: Observation | None = None
    forced: Forced | None = None
    """None where the plan did not ask for it."""
    reference_again_name: str | None = None
    """The endpoint that gave `reference_again`, None for the reference itself."""
    forced_again: Forced | None = None
    """The same endpoint's distribution on the reference's tokens: the floor of the forced scores."""
    vocabulary_size: int | None = None
    prompt_differs: bool = False
    reference_answers: tuple[ReferenceAnswer, ...] = ()
    """What names the reference's answers: those that are kept for later, and those that were known."""
