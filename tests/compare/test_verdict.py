"""Every row of the design's verdict table, with expectations written by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from compare.result import Family, Finding, Scores, Side, VerdictKind
from compare.verdict import judge
from ingest.observation import Failure, FailureKind, Observation, ToolCall
from ingest.pair import Mode, ReplayPlan, ResponsePair
from ingest.records import MirroredRequest, SourcePosition
from ingest.settings import CompareSettings

_SETTINGS = CompareSettings()
_NOW = datetime(2026, 11, 29, 3, tzinfo=UTC)
_ALIKE = {
    "exact_match": 0.0,
    "edit_similarity": 0.8,
    "cosine_similarity": 0.95,
    "numbers_differ": 0.0,
    "keys_differ": 0.0,
    "refusal_flip": 0.0,
}


def _pair(reference: Observation, candidate: Observation) -> ResponsePair:
    mirrored = MirroredRequest(SourcePosition("t", "id", 0, 1), "r-1", {}, "0" * 32, _NOW, _NOW)
    return ResponsePair(
        mirrored=mirrored,
        experiment="e",
        reference_name="full",
        candidate_name="q4",
        reference_body={},
        candidate_body={},
        plan=ReplayPlan(Mode.GREEDY, wants_noise=False, wants_candidate_noise=False, wants_forced=False),
        reference=reference,
        candidate=candidate,
    )


def _said(text: str, finish: str = "stop", **more: Any) -> Observation:
    return Observation(text=text, finish_reason=finish, **more)


def _failed(
    kind: FailureKind = FailureKind.HTTP_ERROR, message: str = "boom", status: int | None = 500
) -> Observation:
    return Observation(failure=Failure(kind, message, status))


def _finding(side: Side, family: Family, *, is_fault: bool = True) -> Finding:
    return Finding(family=family, code="c", side=side, message="m", is_fault=is_fault)


_A, _B = _said("It is warm in May."), _said("In May it is warm.")
_C_LOOP = _finding("candidate", Family.REPETITION)
_R_LOOP = _finding("reference", Family.REPETITION)
_C_JSON = _finding("candidate", Family.JSON)
_R_JSON = _finding("reference", Family.JSON)


@pytest.mark.parametrize(
    ("reference", "candidate", "findings", "scores", "kind", "cause"),
    [
        # Errors come first, whatever else was found.
        (_A, _failed(), [], {}, "candidate_error", "engine"),
        (_failed(), _A, [_C_LOOP], {}, "reference_error", "engine"),
        (_failed(), _failed(), [], {}, "both_error", "engine"),
        (_A, _failed(FailureKind.CUT_STREAM, "reset", None), [], {}, "candidate_error", "transport"),
        (_A, _failed(FailureKind.IDLE_TIMEOUT, "30 s", None), [], {}, "candidate_error", "sampler"),
        (_A, _failed(message="CUDA out of memory"), [], {}, "candidate_error", "memory"),
        (_A, _failed(FailureKind.CONTEXT_EXCEEDED, "too long", 400), [], {}, "candidate_error", "request"),
        (_A, _failed(), [_finding("candidate", Family.LOGITS)], {}, "candidate_error", "numeric"),
        # Faults next: C \ R and R \ C.
        (_A, _B, [_C_LOOP], _ALIKE, "candidate_worse", "sampler"),
        (_A, _B, [_R_LOOP], _ALIKE, "reference_worse", "sampler"),
        (_A, _B, [_C_LOOP, _R_LOOP], _ALIKE, "both_faulty", "sampler"),
        (_A, _B, [_C_LOOP, _R_LOOP, _C_JSON], _ALIKE, "candidate_worse", "unknown"),
        (_A, _B, [_C_LOOP, _R_LOOP, _R_JSON], _ALIKE, "reference_worse", "unknown"),
        (_A, _B, [_C_LOOP, _R_JSON], _ALIKE, "both_faulty", "sampler"),
        (_A, _B, [_finding("candidate", Family.TRUNCATION)], _ALIKE, "candidate_worse", "truncation"),
        (_A, _B, [_finding("candidate", Family.LOGITS), _C_LOOP], _ALIKE, "candidate_worse", "numeric"),
        (_A, _A, [_C_LOOP], {"exact_match": 1.0}, "candidate_worse", "sampler"),
        # What is no fault changes nothing.
        (_A, _A, [_finding("candidate", Family.TRUNCATION, is_fault=False)], {}, "match", "unknown"),
        (_A, _A, [_finding("candidate", Family.LOGPROBS_FORMAT)], {}, "match", "unknown"),
        (_A, _A, [_finding("candidate", Family.REQUEST)], {}, "match", "unknown"),
        # Likeness last.
        (_A, _A, [], {}, "match", "unknown"),
        (_said("Yes."), _said(" Yes.\n"), [], {"exact_match": 1.0}, "match", "unknown"),
        (_A, _said(_A.text, "length"), [], {}, "equivalent", "unknown"),
        (_A, _B, [], _ALIKE, "equivalent", "unknown"),
        (_A, _B, [], {**_ALIKE, "cosine_similarity": 0.90}, "equivalent", "unknown"),
        (_A, _B, [], {**_ALIKE, "cosine_similarity": 0.89}, "diverged", "unknown"),
        (_A, _B, [], {**_ALIKE, "edit_similarity": 0.59}, "diverged", "unknown"),
        (_said("41"), _said("42"), [], {**_ALIKE, "numbers_differ": 1.0}, "diverged", "unknown"),
        (_A, _B, [], {**_ALIKE, "keys_differ": 2.0}, "diverged", "unknown"),
        (_A, _B, [], {**_ALIKE, "refusal_flip": 1.0}, "diverged", "unknown"),
        (_A, _B, [], {**_ALIKE, "field_agreement": 0.5}, "diverged", "unknown"),
        (_A, _B, [], {**_ALIKE, "field_agreement": 1.0}, "equivalent", "unknown"),
        # Nothing becomes equivalent on nothing.
        (_A, _B, [], {k: v for k, v in _ALIKE.items() if k != "cosine_similarity"}, "unscored", "unknown"),
        (_A, _B, [], {k: v for k, v in _ALIKE.items() if k != "edit_similarity"}, "unscored", "unknown"),
        (_A, _B, [], {"edit_similarity": 0.2}, "diverged", "unknown"),
        (_A, _B, [], {"edit_similarity": 0.9, "numbers_differ": 1.0}, "diverged", "unknown"),
        (_A, _B, [], {}, "unscored", "unknown"),
    ],
)
def test_verdict(
    reference: Observation,
    candidate: Observation,
    findings: list[Finding],
    scores: dict[str, float],
    kind: str,
    cause: str,
) -> None:
    verdict = judge(_pair(reference, candidate), Scores(values=scores), findings, _SETTINGS)
    assert (verdict.kind, verdict.probable_cause) == (kind, cause)
    assert verdict.reasons
    assert verdict.is_regression == (kind in ("candidate_worse", "candidate_error"))


_HANG = _failed(FailureKind.IDLE_TIMEOUT, "30 s", None)


def _logits(side: Side, code: str) -> Finding:
    return Finding(family=Family.LOGITS, code=code, side=side, message="m")


@pytest.mark.parametrize(
    ("temperatures", "candidate", "findings", "cause"),
    [
        # No sampler chooses at temperature 0: what one side alone loops on comes of its numbers.
        ((0, 0), _B, [_C_LOOP], "numeric"),
        ((0.0, 0.0), _B, [_R_LOOP], "numeric"),
        ((0, 0), _B, [_C_LOOP, _R_LOOP], "unknown"),
        ((0, 0), _B, [_C_LOOP, _R_JSON], "numeric"),
        ((0, 0), _B, [_logits("candidate", "collapse"), _C_LOOP], "numeric"),
        ((0, 0), _B, [_logits("candidate", "stall")], "engine"),
        ((0, 0), _HANG, [], "engine"),
        # A temperature above 0, or none (the endpoint's own), leaves the sampler.
        ((0.1, 0.1), _B, [_C_LOOP], "sampler"),
        ((0, 0.1), _B, [_C_LOOP], "sampler"),
        ((0, None), _HANG, [], "sampler"),
        ((0.1, 0.1), _B, [_logits("candidate", "stall")], "sampler"),
    ],
)
def test_no_sampler_is_the_cause_at_temperature_0(
    temperatures: tuple[float | None, float | None],
    candidate: Observation,
    findings: list[Finding],
    cause: str,
) -> None:
    reference_body, candidate_body = ({} if one is None else {"temperature": one} for one in temperatures)
    pair = msgspec.structs.replace(
        _pair(_A, candidate), reference_body=reference_body, candidate_body=candidate_body
    )
    assert judge(pair, Scores(_ALIKE), findings, _SETTINGS).probable_cause == cause
    # A side that read another prompt may loop on that.
    other = judge(msgspec.structs.replace(pair, prompt_differs=True), Scores(_ALIKE), findings, _SETTINGS)
    assert other.probable_cause == ("unknown" if cause == "numeric" else cause)


@pytest.mark.parametrize(
    ("reference", "candidate", "kind"),
    [
        ((ToolCall("pay", '{"a": 1}'),), (ToolCall("pay", '{"a":1}'),), VerdictKind.MATCH),
        ((ToolCall("pay", '{"a": 1}'),), (ToolCall("pay", '{"a": 2}'),), VerdictKind.DIVERGED),
        ((ToolCall("pay", "{}"),), (ToolCall("ask", "{}"),), VerdictKind.DIVERGED),
        ((ToolCall("pay", "{}"),), (), VerdictKind.DIVERGED),
    ],
)
def test_tool_calls_decide(
    reference: tuple[ToolCall, ...], candidate: tuple[ToolCall, ...], kind: VerdictKind
) -> None:
    pair = _pair(_said("", tool_calls=reference), _said("", tool_calls=candidate))
    assert judge(pair, Scores(values=dict(_ALIKE)), [], _SETTINGS).kind is kind


def test_families_of_one_side_only_are_named() -> None:
    verdict = judge(_pair(_A, _B), Scores(), [_C_LOOP, _R_LOOP, _C_JSON], _SETTINGS)
    assert verdict.candidate_only == (Family.JSON,)
    assert verdict.reference_only == ()
    assert verdict.reasons[0] == "candidate: json/c: m"


def test_an_unscored_verdict_says_which_score_and_why() -> None:
    scores = Scores(values={"edit_similarity": 0.9}, unscored={"cosine_similarity": "embeddings_off"})
    verdict = judge(_pair(_A, _B), scores, [], _SETTINGS)
    assert verdict.reasons == ("cosine_similarity is unscored: embeddings_off",)


def test_thresholds_are_settings() -> None:
    strict = CompareSettings(equivalent_cosine=0.99)
    assert judge(_pair(_A, _B), Scores(values=dict(_ALIKE)), [], strict).kind is VerdictKind.DIVERGED
