"""From an answer to a case's result: its score, whether it passed, and why not."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from compare.golden.case import GoldenCase
from compare.golden.checks import Answered, Keys, failures, keys_right
from compare.metrics.structure import JsonReading, fields_right, read_json, same_tool_calls
from compare.metrics.text import answer_text
from compare.result import Comparison
from compare.verdict import fault_families
from ingest.observation import Failure, FailureKind, Observation, ToolCall
from ingest.pair import Mode, ReplayPlan, ResponsePair
from ingest.settings import ExperimentSettings

Status = Literal["passed", "failed", "away"]

_NOTHING_EXPECTED = Observation(failure=Failure(FailureKind.UNREADABLE, "no answer is expected"))
"""Stands on the other side of a case that only has checks: nothing is compared with it."""
_MAX_REASONS = 8


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What came of asking a case: the body that was sent and the outcome, or why it could not be asked."""

    body: dict[str, Any] = {}
    changes: tuple[str, ...] = ()
    mode: Mode = Mode.GREEDY
    observation: Observation | None = None
    away: str = ""


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """One case of one run. A score of None: nothing applied.

    `score` is the least of cosine, edit and field agreement, of those that apply, and 0 where the answer
    was an error. `fields_expected` counts the leaves of an expected JSON answer and the fields that checks
    name, `fields_right` those that the answer has.
    """

    case_id: str
    case_hash: str
    status: Status
    score: float | None = None
    cosine_similarity: float | None = None
    edit_similarity: float | None = None
    field_agreement: float | None = None
    is_exact: bool | None = None
    is_faulty: bool | None = None
    fault_families: tuple[str, ...] = ()
    fields_expected: int = 0
    fields_right: int = 0
    failed_checks: tuple[str, ...] = ()
    """Kinds of checks; also `error`, `fault` and `score`, which every case is held to."""
    reasons: tuple[str, ...] = ()
    verdict: str = ""
    answer: Observation | None = None

    @property
    def is_passed(self) -> bool:
        """Whether it passed."""
        return self.status == "passed"


def pair_of(case: GoldenCase, asked: Asked, experiment: ExperimentSettings, endpoint: str) -> ResponsePair:
    """The expected answer and the given one as a response pair, for the same comparison as all pairs."""
    assert asked.observation is not None
    expected = _NOTHING_EXPECTED if case.expected is None else case.expected.as_observation()
    return ResponsePair(
        mirrored=case.mirrored(),
        experiment=experiment.name,
        reference_name=experiment.reference,
        candidate_name=endpoint,
        reference_body=asked.body,
        candidate_body=asked.body,
        plan=ReplayPlan(asked.mode, False, False, False, asked.changes),
        reference=expected,
        candidate=asked.observation,
    )


def away(case: GoldenCase, why: str) -> CaseResult:
    """The result of a case that could not be asked: it says nothing of the model."""
    return CaseResult(case_id=case.case_id, case_hash=case.case_hash(), status="away", reasons=(why,))


def result_of(
    case: GoldenCase, observation: Observation, comparison: Comparison, least_score: float
) -> CaseResult:
    """Judge one answer. A case without checks passes from `least_score` on."""
    scores, expected = comparison.scores, case.expected
    faults = tuple(sorted(fault_families(comparison.findings, "candidate")))
    accepted = fault_families(comparison.findings, "reference") if expected is not None else frozenset()
    failed: list[tuple[str, str]] = []
    is_exact, cosine, edit, fields = None, None, None, (0, 0)
    agreement = None
    if expected is not None and observation.has_answer:
        known = expected.as_observation()
        is_exact = (
            scores.values.get("exact_match") == 1.0
            and same_tool_calls(known.tool_calls, observation.tool_calls)
            and expected.finish_reason in (None, observation.finish_reason)
        )
        cosine, edit = scores.values.get("cosine_similarity"), scores.values.get("edit_similarity")
    if expected is not None:
        fields = _fields(expected.as_observation(), observation)
        agreement = scores.values.get("field_agreement")
        if agreement is None and fields[1]:
            agreement = fields[0] / fields[1]
    reading = json_of(observation)
    for check in case.checks:
        if isinstance(check, Keys):
            right = len(keys_right(check, reading))
            fields = fields[0] + right, fields[1] + len(check.keys)
            share = right / len(check.keys)
            agreement = share if agreement is None else min(agreement, share)
    score: float | None
    if observation.failure is not None:
        score = 0.0
        failure = observation.failure
        status = "" if failure.status is None else f" {failure.status}"
        failed.append(("error", f"{failure.kind}{status}: {failure.message[:160]}"))
    else:
        applying = [value for value in (cosine, edit, agreement) if value is not None]
        score = min(1.0, max(0.0, min(applying))) if applying else None
        answered = Answered(
            text=answer_text(observation), json=reading, is_exact=is_exact, cosine=cosine, edit=edit
        )
        failed += [(one.kind, one.reason) for one in failures(case.checks, answered)]
        if not case.checks and score is not None and score < least_score:
            parts = (("cosine", cosine), ("edit", edit), ("fields", agreement))
            told = ", ".join(f"{name} {value:.3f}" for name, value in parts if value is not None)
            failed.append(("score", f"score {score:.3f} is under {least_score} ({told})"))
    for finding in comparison.findings:
        is_new = finding.family in faults and finding.family not in accepted
        if finding.side == "candidate" and finding.is_fault and is_new:
            failed.append(("fault", f"{finding.family}/{finding.code}: {finding.message}"))
    return CaseResult(
        case_id=case.case_id,
        case_hash=case.case_hash(),
        status="failed" if failed else "passed",
        score=score,
        cosine_similarity=cosine,
        edit_similarity=edit,
        field_agreement=agreement,
        is_exact=is_exact if expected is None or observation.has_answer else False,
        is_faulty=bool(faults) or observation.failure is not None,
        fault_families=faults,
        fields_expected=fields[1],
        fields_right=fields[0],
        failed_checks=tuple(dict.fromkeys(kind for kind, _ in failed)),
        reasons=tuple(f"{kind}: {reason}" for kind, reason in failed[:_MAX_REASONS]),
        verdict=str(comparison.verdict.kind) if expected is not None else "",
        answer=observation,
    )


def json_of(observation: Observation) -> JsonReading:
    """The answer as JSON: its text, or the arguments of its only tool call where it has no text."""
    if len(observation.tool_calls) == 1 and not observation.text.strip():
        return read_json(observation.tool_calls[0].arguments)
    return read_json(observation.text)


def _fields(expected: Observation, given: Observation) -> tuple[int, int]:
    """How many fields of the expected calls, or else of the expected JSON object or list, were given."""
    if expected.tool_calls:
        return fields_right([*map(_call, expected.tool_calls)], [*map(_call, given.tool_calls)])
    reading = read_json(expected.text)
    if not reading.is_valid or not isinstance(reading.value, dict | list) or not reading.value:
        return 0, 0
    answer = read_json(given.text) if given.has_answer else JsonReading(False)
    return fields_right(reading.value, answer.value if answer.is_valid else None)


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = read_json(call.arguments)
    return {"name": call.name, "arguments": arguments.value if arguments.is_valid else call.arguments}
