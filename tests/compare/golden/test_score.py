"""From an answer to a result: the score of section 9, what fails a case, what does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compare.comparison import compare_pairs
from compare.golden.case import Expected, GoldenCase
from compare.golden.checks import Exact, Key, Keys, Pattern
from compare.golden.score import Asked, CaseResult, pair_of, result_of
from compare.result import Comparison
from ingest.observation import Failure, FailureKind, Observation, ToolCall
from ingest.settings import CompareSettings, EndpointSettings, ExperimentSettings, Settings
from tests.compare.golden.rig import body, case

SETTINGS = Settings(
    experiment=ExperimentSettings(name="e", reference="ref", candidates=["cand"], models={}),
    endpoints={name: EndpointSettings(url="http://127.0.0.1:1") for name in ("ref", "cand")},
    compare=CompareSettings(embedding_model=""),
)


def judged(golden: GoldenCase, answer: str | Observation, **seen: Any) -> CaseResult:
    observation = (
        answer if isinstance(answer, Observation) else Observation(text=answer, finish_reason="stop")
    )
    asked = Asked(body=golden.body, observation=observation)
    (comparison,) = compare_pairs([pair_of(golden, asked, SETTINGS.experiment, "cand")], None, SETTINGS)
    assert isinstance(comparison, Comparison)
    if seen:
        comparison.scores.values.update(seen)
    return result_of(golden, observation, comparison, 0.6)


def test_the_expected_answer_passes_with_score_one() -> None:
    found = judged(case(), " fine answer\n")
    assert (found.status, found.score, found.is_exact, found.reasons) == ("passed", 1.0, True, ())
    assert (found.verdict, found.is_faulty, found.fields_expected) == ("match", False, 0)


def test_the_score_is_the_least_of_what_applies() -> None:
    # Of "abcdefghij" six of ten characters stay: edit similarity 0.6 by hand.
    golden = case(text="abcdefghij")
    assert judged(golden, "abcdefWXYZ").score == pytest.approx(0.6)
    assert judged(golden, "abcdefWXYZ", cosine_similarity=0.25).score == 0.25
    assert judged(golden, "abcdefWXYZ", cosine_similarity=0.95).score == pytest.approx(0.6)
    # A cosine may be negative; a score is not.
    assert judged(golden, "abcdefWXYZ", cosine_similarity=-0.2).score == 0.0


def test_without_checks_the_score_decides() -> None:
    golden = case(text="abcdefghij")
    assert judged(golden, "abcdefWXYZ").is_passed
    found = judged(golden, "abcdeVWXYZ")
    assert (found.status, found.failed_checks) == ("failed", ("score",))
    assert found.reasons == ("score: score 0.500 is under 0.6 (edit 0.500)",)


def test_with_checks_they_decide_and_not_the_score() -> None:
    golden = case(text="abcdefghij", checks=(Pattern("^zz"),))
    assert judged(golden, "zz").is_passed
    found = judged(golden, "abcdefghij")
    assert (found.status, found.failed_checks, found.score) == ("failed", ("pattern",), 1.0)


def test_another_finish_reason_is_not_exact() -> None:
    cut = Observation(text="fine answer", finish_reason="length", completion_tokens=2)
    limited = body(max_tokens=2)
    assert judged(case(checks=(Exact(),), body=limited), cut).failed_checks == ("exact",)
    any_end = case(expected=Expected("fine answer"), checks=(Exact(),), body=limited)
    assert judged(any_end, cut).is_exact is True


def test_fields_of_an_expected_object_count_one_by_one() -> None:
    expected = json.dumps({"code": 7, "host": "a", "tags": ["x", "y"]})
    given = json.dumps({"code": 7, "host": "b", "tags": ["x"], "more": 1})
    asked = body(response_format={"type": "json_object"})
    found = judged(case(text=expected, body=asked), given)
    # Right: code and tags[0] of four leaves. Agreement counts `more` as well: two of five.
    assert (found.fields_right, found.fields_expected) == (2, 4)
    assert found.field_agreement == pytest.approx(2 / 5)
    assert found.score is not None and found.score <= 2 / 5
    unasked = judged(case(text=expected), given)
    assert unasked.field_agreement == pytest.approx(2 / 4)


def test_an_answer_that_is_no_json_has_no_field_right() -> None:
    found = judged(case(text='{"a": 1, "b": 2}'), "one and two")
    assert (found.fields_right, found.fields_expected, found.field_agreement, found.score) == (0, 2, 0.0, 0.0)


def test_expected_tool_calls_are_fields_too() -> None:
    call = ToolCall("find", '{"q": "a", "n": 3}', "1")
    golden = case(expected=Expected("", (call,), "tool_calls"))
    given = Observation(tool_calls=(ToolCall("find", '{"n": 3, "q": "b"}', "2"),), finish_reason="tool_calls")
    found = judged(golden, given)
    # Leaves: the name, q and n; q differs.
    assert (found.fields_right, found.fields_expected, found.is_exact) == (2, 3, False)
    again = Observation(tool_calls=(ToolCall("find", '{"n": 3, "q": "a"}', "9"),), finish_reason="tool_calls")
    assert judged(golden, again).fields_right == 3


def test_keys_checks_work_without_an_expected_answer() -> None:
    golden = case(text=None, checks=(Keys([Key("$.a", 1), Key("$.b", 2)]),))
    found = judged(golden, '{"a": 1, "b": 3}')
    assert (found.status, found.score, found.fields_right, found.fields_expected) == ("failed", 0.5, 1, 2)
    assert (found.is_exact, found.verdict) == (None, "")
    assert judged(golden, '{"a": 1, "b": 2}').is_passed


def test_a_case_with_only_a_pattern_has_no_score() -> None:
    found = judged(case(text=None, checks=(Pattern("ok"),)), "it is ok")
    assert (found.status, found.score, found.is_exact) == ("passed", None, None)


def test_an_error_is_evidence_and_scores_zero() -> None:
    failed = Observation(failure=Failure(FailureKind.HTTP_ERROR, "boom", 500))
    found = judged(case(), failed)
    assert (found.status, found.score, found.is_faulty, found.is_exact) == ("failed", 0.0, True, False)
    assert found.reasons == ("error: http_error 500: boom",)


def test_a_fault_fails_whatever_the_checks_say() -> None:
    loop = "the same words again and again. " * 40
    found = judged(case(text=None, checks=(Pattern("same"),)), loop)
    assert (found.status, found.is_faulty, found.fault_families) == ("failed", True, ("repetition",))
    assert found.failed_checks == ("fault",)


def test_a_fault_that_the_expected_answer_has_is_no_failure() -> None:
    broken = "The caf\ufffd\ufffd is open."
    found = judged(case(text=broken), broken)
    assert (found.status, found.is_faulty, found.fault_families) == ("passed", True, ("utf8",))
    assert judged(case(text="The café is open."), broken).failed_checks == ("fault",)
