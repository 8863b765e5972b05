"""The two answers that are compared, and what decides whether their token numbers mean anything.

The candidate against the reference, the reference against its own second answer and the candidate
against its own all go through the same code: each is one `Sides`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compare.detectors.echoed import without_prompt
from ingest.observation import Observation
from ingest.pair import Forced, Mode, ResponsePair
from ingest.replay_body import is_constrained
from ingest.structure import ExpectedStructure


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Two observations of one request. For a noise pair both are of the same endpoint."""

    reference: Observation
    candidate: Observation
    reference_body: dict[str, Any]
    candidate_body: dict[str, Any]
    request: dict[str, Any]
    """The mirrored body: what the client asked for."""
    mode: Mode
    vocabulary_size: int | None
    prompt_differs: bool = False
    forced: Forced | None = None
    is_noise: bool = False
    expected: ExpectedStructure | None = None
    """What structure the answers should have, where more is known than the request says."""

    @property
    def have_answers(self) -> bool:
        """Whether both endpoints answered at all."""
        return self.reference.has_answer and self.candidate.has_answer


def sides_of(pair: ResponsePair, expected: ExpectedStructure | None = None) -> Sides:
    """Return the candidate against the reference; `expected` where the request alone does not say it.

    A prompt that the request wants back is taken off both: its tokens are nobody's choices.
    """
    return Sides(
        reference=without_prompt(pair.reference, pair.reference_body),
        candidate=without_prompt(pair.candidate, pair.candidate_body),
        reference_body=pair.reference_body,
        candidate_body=pair.candidate_body,
        request=pair.mirrored.body,
        mode=pair.plan.mode,
        vocabulary_size=pair.vocabulary_size,
        prompt_differs=pair.prompt_differs,
        forced=pair.forced,
        expected=expected,
    )


def noise_of(pair: ResponsePair, expected: ExpectedStructure | None = None) -> Sides | None:
    """Return the reference's second answer against its first, None where it was asked once."""
    return _noise(
        pair, pair.reference, pair.reference_again, pair.reference_body, expected, pair.forced_again
    )


def candidate_noise_of(pair: ResponsePair, expected: ExpectedStructure | None = None) -> Sides | None:
    """Return the candidate's second answer against its first, None where it was asked once."""
    return _noise(pair, pair.candidate, pair.candidate_again, pair.candidate_body, expected)


def list_reason(observation: Observation, body: dict[str, Any]) -> str | None:
    """Return why an answer's lists are not the model's own distributions, None where they are.

    Under constrained decoding log-probabilities may be taken before or after the mask. Where they were
    taken after temperature or top_p the reader has seen it, or the request has asked for it.
    """
    if is_constrained(body):
        return "constrained"
    if "logprobs_filtered" in observation.notes or body.get("post_sampling_probs"):
        return "logprobs_filtered"
    return None


def token_reason(observation: Observation, lists: str | None, mode: Mode) -> str | None:
    """Return why one answer has no distributions of the model's own, None where it has.

    `lists` is its `list_reason`.
    """
    if not observation.has_answer:
        return "no_answer"
    if mode is not Mode.GREEDY:
        return "sampled"
    return lists or (None if len(observation.tokens) else "no_logprobs")


def _noise(
    pair: ResponsePair,
    first: Observation,
    again: Observation | None,
    body: dict[str, Any],
    expected: ExpectedStructure | None,
    forced: Forced | None = None,
) -> Sides | None:
    if again is None:
        return None
    counts = first.prompt_tokens, again.prompt_tokens
    return Sides(
        reference=first,
        candidate=again,
        reference_body=body,
        candidate_body=body,
        request=pair.mirrored.body,
        mode=pair.plan.mode,
        vocabulary_size=pair.vocabulary_size,
        # A second reference may be served with another template.
        prompt_differs=None not in counts and counts[0] != counts[1],
        forced=forced,
        is_noise=True,
        expected=expected,
    )
