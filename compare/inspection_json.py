"""Inspections and comparisons as plain JSON values, for machines."""

from __future__ import annotations

from typing import Any

import msgspec

from compare.inspection import Inspection
from compare.result import Comparison, Finding
from compare.severity import severity
from ingest.observation import FailureKind, Observation


def inspection_json(inspection: Inspection) -> dict[str, Any]:
    """One inspection. `parse` is `ok`, or why the bytes could not be read as an answer.

    A server's own error and a cut stream are read well: they stand in `observation.failure`.
    """
    failure = inspection.observation.failure
    is_unreadable = failure is not None and failure.kind is FailureKind.UNREADABLE
    return {
        "parse": failure.message if failure is not None and is_unreadable else "ok",
        "observation": observation_json(inspection.observation),
        "findings": [finding_json(finding) for finding in inspection.findings],
    }


def observation_json(observation: Observation) -> dict[str, Any]:
    """The observation with the names of the case format; tool calls are [name, arguments]."""
    return {
        "text": observation.text,
        "reasoning": observation.reasoning,
        "finish_reason": observation.finish_reason,
        "tool_calls": [[call.name, _arguments(call.arguments)] for call in observation.tool_calls],
        "prompt_tokens": observation.prompt_tokens,
        "completion_tokens": observation.completion_tokens,
        "tokens": [token.text for token in observation.tokens],
        "token_logprobs": [_finite(token.logprob) for token in observation.tokens],
        "notes": list(observation.notes),
        "failure": msgspec.to_builtins(observation.failure),
    }


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as one JSON object; its numbers are those that the pipeline stores.

    `gap_nats` of the first divergence is the larger of the two sides' own gaps, the one that decides whether
    the parting is a near tie; that of one side where the other's list lacks a token, and then it is none.
    """
    divergence = comparison.divergence
    gaps = () if divergence is None else (divergence.reference_gap_nats, divergence.candidate_gap_nats)
    known = [gap for gap in gaps if gap is not None]
    scores: dict[str, float | None] = dict(comparison.scores.values)
    scores.update(dict.fromkeys(comparison.scores.unscored))
    return {
        "verdict": comparison.verdict.kind.value,
        "is_regression": comparison.verdict.is_regression,
        "reasons": list(comparison.verdict.reasons),
        "probable_cause": comparison.verdict.probable_cause,
        "severity": severity(comparison.scores, comparison.verdict),
        "scores": scores,
        "unscored": comparison.scores.unscored,
        "findings": [finding_json(finding) for finding in comparison.findings],
        "differing_paths": list(comparison.differing_paths),
        "first_divergence": None
        if divergence is None
        else {
            "position": divergence.position,
            "reference_token": divergence.reference_token,
            "candidate_token": divergence.candidate_token,
            "gap_nats": max(known, key=abs) if known else None,
            "reference_gap_nats": divergence.reference_gap_nats,
            "candidate_gap_nats": divergence.candidate_gap_nats,
            "near_tie": divergence.is_near_tie,
        },
        "positions": [
            {
                "index": position.index,
                "role": position.role,
                "kl_lower_nats": position.kl_lower_nats,
                "js_lower_nats": position.js_lower_nats,
                "js_upper_nats": position.js_upper_nats,
                "probability_change": position.probability_change,
                "top1_agreement": position.top1_agreement,
                "reference": {
                    "entropy_lower_nats": position.reference_entropy_lower_nats,
                    "entropy_upper_nats": position.reference_entropy_upper_nats,
                },
                "candidate": {
                    "entropy_lower_nats": position.candidate_entropy_lower_nats,
                    "entropy_upper_nats": position.candidate_entropy_upper_nats,
                },
            }
            for position in comparison.positions
        ],
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """The finding with its evidence, as plain JSON values."""
    plain: dict[str, Any] = msgspec.to_builtins(finding)
    return plain


def _arguments(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _finite(value: float | None) -> float | None:
    return None if value is None or value in (float("inf"), float("-inf")) else value
