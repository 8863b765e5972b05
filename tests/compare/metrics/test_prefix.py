from __future__ import annotations

import math
from typing import Any

import pytest

from compare.metrics.token_scores import TokenResult
from compare.position_scores import PositionScores
from compare.result import Scores
from ingest.observation import Failure, FailureKind, Observation
from ingest.pair import Mode
from tests.compare.metrics import reports
from tests.compare.metrics.reports import answer, token

PREFIX_NAMES = {
    "prefix_tokens",
    "divergence_gap_nats",
    "kl_prefix_mean_nats",
    "kl_prefix_max_nats",
    "entropy_shift_prefix_nats",
    "top1_agreement_prefix_ratio",
    "js_prefix_lower_mean_nats",
    "js_prefix_upper_mean_nats",
    "probability_change_prefix_mean",
    "probability_change_prefix_rms",
    "probability_change_prefix_p5",
    "probability_change_prefix_p50",
    "probability_change_prefix_p95",
}
FAILED = Observation(failure=Failure(FailureKind.HTTP_ERROR, "boom", 500))

# Whole distributions over two tokens: every bound is exact.
REFERENCE = answer(token(1, (2, 0.1), p=0.9), token(1, (2, 0.4), p=0.6), token(1, (2, 0.2), p=0.8))
CANDIDATE = answer(token(1, (2, 0.3), p=0.7), token(2, (1, 0.45), p=0.55), token(2, (1, 0.2), p=0.8))


def kl(p: float, q: float) -> float:
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def entropy(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def scored(reference: Observation, candidate: Observation, **more: Any) -> tuple[Scores, TokenResult]:
    """The prefix scores alone, and what is shown."""
    scores, result = reports.scored(reference, candidate, **more)
    values = {name: value for name, value in scores.values.items() if name in PREFIX_NAMES}
    return Scores(values, {n: why for n, why in scores.unscored.items() if n in PREFIX_NAMES}), result


def entropies(reference: Observation, candidate: Observation, **more: Any) -> Scores:
    return reports.scored(reference, candidate, **more)[0]


def test_only_up_to_and_including_the_first_difference() -> None:
    scores, result = scored(REFERENCE, CANDIDATE, vocabulary_size=2)
    first, second = kl(0.9, 0.7), kl(0.6, 0.45)
    assert scores.values["prefix_tokens"] == 1.0
    assert scores.values["kl_prefix_mean_nats"] == pytest.approx((first + second) / 2)
    assert scores.values["kl_prefix_max_nats"] == pytest.approx(max(first, second))
    assert scores.values["top1_agreement_prefix_ratio"] == 0.5
    shift = (entropy(0.7) - entropy(0.9) + entropy(0.55) - entropy(0.6)) / 2
    assert scores.values["entropy_shift_prefix_nats"] == pytest.approx(shift)
    assert [position.index for position in result.positions] == [0, 1]
    assert result.positions[0].kl_lower_nats == pytest.approx(first)
    assert result.positions[1].candidate_entropy_upper_nats == pytest.approx(entropy(0.55))
    assert result.divergence is not None
    assert result.divergence.is_near_tie is False


def test_answer_entropy_is_over_each_sides_whole_answer() -> None:
    scores = entropies(REFERENCE, CANDIDATE, vocabulary_size=2)
    expected = (entropy(0.9) + entropy(0.6) + entropy(0.8)) / 3
    assert scores.values["entropy_reference_lower_nats"] == pytest.approx(expected)
    expected = (entropy(0.7) + entropy(0.55) + entropy(0.8)) / 3
    assert scores.values["entropy_candidate_upper_nats"] == pytest.approx(expected)


def test_without_a_vocabulary_size_there_is_no_upper_bound() -> None:
    scores = entropies(REFERENCE, CANDIDATE)
    assert scores.unscored["entropy_reference_upper_nats"] == "no_vocabulary_size"
    _, result = scored(REFERENCE, CANDIDATE)
    assert result.positions[0].reference_entropy_upper_nats is None


def test_a_stated_vocabulary_that_is_too_small_gives_no_upper_bound_anywhere() -> None:
    # The last position's list alone shows a third token.
    wide = answer(token(1, (2, 0.1)), token(3, (4, 0.2), (5, 0.2), p=0.6))
    scores = entropies(REFERENCE, wide, vocabulary_size=2)
    assert scores.unscored["entropy_candidate_upper_nats"] == "vocabulary_too_small"
    assert {"entropy_candidate_lower_nats", "entropy_reference_upper_nats"} <= scores.values.keys()
    _, result = scored(wide, wide, vocabulary_size=2)
    for side in ("reference", "candidate"):
        assert result.positions.numbers(f"{side}_entropy_upper_nats") == [None, None]
        assert None not in result.positions.numbers(f"{side}_entropy_lower_nats")


@pytest.mark.parametrize(
    ("reference", "candidate", "more", "reason"),
    [
        (FAILED, CANDIDATE, {}, "no_answer"),
        (REFERENCE, FAILED, {}, "no_answer"),
        (REFERENCE, CANDIDATE, {"mode": Mode.AS_SENT}, "sampled"),
        (REFERENCE, CANDIDATE, {"mode": Mode.MIRRORED}, "sampled"),
        (REFERENCE, CANDIDATE, {"prompt_differs": True}, "prompt_differs"),
        (REFERENCE, answer(), {}, "no_logprobs"),
    ],
)
def test_why_nothing_is_scored(
    reference: Observation, candidate: Observation, more: dict[str, Any], reason: str
) -> None:
    scores, result = scored(reference, candidate, **more)
    assert scores.unscored == dict.fromkeys(PREFIX_NAMES, reason)
    assert scores.values == {}
    assert result == TokenResult()


@pytest.mark.parametrize(
    "body",
    [
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
        {"guided_choice": ["a", "b"]},
        {"structured_outputs": {"regex": "a+"}},
        {"grammar": 'root ::= "a"'},
        {"regex": "a+"},
        {"tool_choice": "required"},
        {"tool_choice": {"type": "function", "function": {"name": "f"}}},
    ],
)
def test_constrained_decoding_says_where_answers_part_and_nothing_of_distributions(
    body: dict[str, Any],
) -> None:
    scores, result = scored(REFERENCE, CANDIDATE, candidate_body=body)
    assert scores.values == {"prefix_tokens": 1.0}
    assert scores.unscored == dict.fromkeys(PREFIX_NAMES - {"prefix_tokens"}, "constrained")
    assert result.divergence is not None
    assert result.positions == PositionScores()
    found = entropies(REFERENCE, CANDIDATE, candidate_body=body)
    assert found.unscored["entropy_candidate_lower_nats"] == "constrained"
    assert "entropy_reference_lower_nats" in found.values


def test_plain_text_format_and_free_tools_do_not_constrain() -> None:
    body = {"response_format": {"type": "text"}, "tools": [{"type": "function"}], "tool_choice": "auto"}
    scores, _ = scored(REFERENCE, CANDIDATE, reference_body=body, candidate_body=body)
    assert "kl_prefix_mean_nats" in scores.values


def test_one_infinite_position_is_not_averaged_away() -> None:
    candidate = answer(token(1, (2, 0.0), p=1.0), *CANDIDATE.tokens[1:])
    scores, result = scored(REFERENCE, candidate)
    assert scores.unscored["kl_prefix_mean_nats"] == "infinite"
    assert scores.unscored["kl_prefix_max_nats"] == "infinite"
    assert result.positions[0].kl_lower_nats is None
    assert result.positions[1].kl_lower_nats is not None


def test_a_position_that_cannot_be_read_is_left_out() -> None:
    broken = token(1, (2, 0.9), p=0.9)
    scores, result = scored(answer(broken, *REFERENCE.tokens[1:]), CANDIDATE)
    assert scores.values["kl_prefix_mean_nats"] == pytest.approx(kl(0.6, 0.45))
    assert result.positions[0].reference_entropy_lower_nats is None
    assert result.positions[0].candidate_entropy_lower_nats == pytest.approx(entropy(0.7))
