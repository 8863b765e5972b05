"""One saved answer or one saved pair, examined by the very code that the pipeline runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from compare.comparison import compare_pairs
from compare.detect import detect
from compare.detectors.subject import Subject
from compare.metrics.embedding import TextEncoder
from compare.result import Comparison, Finding, Side
from ingest.errors import DeadLetterError
from ingest.observation import Observation
from ingest.pair import Mode, ReplayPlan, ResponsePair
from ingest.records import MirroredRequest, SourcePosition
from ingest.request import expects_json, request_hash
from ingest.saved import Case, read_saved
from ingest.settings import CompareSettings, DetectorSettings, ExperimentSettings, Settings


class Inspection(msgspec.Struct, frozen=True):
    """What was read and what was found; `reference_findings` where a case has both sides."""

    observation: Observation
    findings: tuple[Finding, ...]


def inspect_observation(
    observation: Observation,
    request: dict[str, Any],
    settings: DetectorSettings,
    *,
    vocabulary_size: int | None = None,
) -> Inspection:
    """Examine one answer alone. `vocabulary_size` in tokens, None if it is not known."""
    return Inspection(
        observation, _findings(observation, "candidate", request, None, settings, vocabulary_size)
    )


def inspect_case(case: Case, settings: DetectorSettings, *, vocabulary_size: int | None = None) -> Inspection:
    """Examine a case: the candidate in sight of the reference, and the reference's findings after it."""
    asked = case.request or {}
    asked_of_reference = case.reference_request or asked
    candidate = read_saved(case.candidate, asked)
    if case.reference is None:
        return inspect_observation(candidate, asked, settings, vocabulary_size=vocabulary_size)
    reference = read_saved(case.reference, asked_of_reference)
    return Inspection(
        candidate,
        _findings(candidate, "candidate", asked, reference, settings, vocabulary_size)
        + _findings(reference, "reference", asked_of_reference, candidate, settings, vocabulary_size),
    )


def compare_saved(
    reference: Observation,
    candidate: Observation,
    request: dict[str, Any],
    compare: CompareSettings,
    *,
    vocabulary_size: int | None = None,
) -> Comparison:
    """Compare two saved answers to one request.

    A request that sampled (temperature over 0) is judged on its text only, as in replay mode `as_sent`.
    Where it wants its prompt back (`echo`), scores and first divergence count generated tokens only; the
    spans of findings are those of the whole answer.
    Raises DeadLetterError if the pair cannot be compared.
    """
    pair = _pair(reference, candidate, request, vocabulary_size)
    encoder = TextEncoder(compare.embedding_model) if compare.embedding_model else None
    settings = Settings(
        experiment=ExperimentSettings("saved", "reference", ["candidate"], {}), endpoints={}, compare=compare
    )
    (result,) = compare_pairs([pair], encoder, settings)
    if isinstance(result, DeadLetterError):
        raise result
    return result


def _findings(
    observation: Observation,
    side: Side,
    request: dict[str, Any],
    other: Observation | None,
    settings: DetectorSettings,
    vocabulary_size: int | None,
) -> tuple[Finding, ...]:
    subject = Subject(observation, side, request, other, expects_json(request), vocabulary_size)
    return detect(subject, settings)


def _pair(
    reference: Observation, candidate: Observation, request: dict[str, Any], vocabulary_size: int | None
) -> ResponsePair:
    now = datetime.now(UTC)
    temperature = request.get("temperature", 0)
    is_sampled = isinstance(temperature, (int, float)) and temperature > 0
    mirrored = MirroredRequest(
        position=SourcePosition("saved", "saved", 0, 0),
        request_id="saved",
        body=request,
        request_hash=request_hash(request),
        mirrored_at=now,
        ingested_at=now,
    )
    prompts = (reference.prompt_tokens, candidate.prompt_tokens)
    return ResponsePair(
        mirrored=mirrored,
        experiment="saved",
        reference_name="reference",
        candidate_name="candidate",
        reference_body=request,
        candidate_body=request,
        plan=ReplayPlan(
            Mode.AS_SENT if is_sampled else Mode.GREEDY,
            wants_noise=False,
            wants_candidate_noise=False,
            wants_forced=False,
        ),
        reference=reference,
        candidate=candidate,
        vocabulary_size=vocabulary_size,
        prompt_differs=None not in prompts and prompts[0] != prompts[1],
    )
