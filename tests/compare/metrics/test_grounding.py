from __future__ import annotations

import json
from typing import Any

import pytest

from compare.metrics.grounding import MAX_PROMPT_CHARACTERS, MAX_VALUES, score_grounding
from compare.metrics.structure import score_structure
from compare.result import Scores
from ingest.observation import Observation, ToolCall
from tests.compare.metrics.reports import sides

LOG = "2026-01-02 ERROR  [Checkout] code 1021,\nretry in 1,500 ms; ratio 0.25; \uff21\uff22"


def scored(reference: Any, candidate: Any, prompt: str = LOG, **request: Any) -> Scores:
    texts = [item if isinstance(item, str) else json.dumps(item) for item in (reference, candidate)]
    body = {
        "messages": [{"role": "user", "content": prompt}],
        "response_format": {"type": "json_object"},
        **request,
    }
    scores = Scores()
    both = sides(Observation(text=texts[0]), Observation(text=texts[1]), request=body)
    score_grounding(both, score_structure(both, scores).readings, scores)
    return scores


@pytest.mark.parametrize(
    ("value", "share"),
    [
        ({"level": "error", "module": "checkout"}, 1.0),  # case is folded
        ({"code": 1021, "wait": 1500, "ratio": 0.25}, 1.0),  # numbers by value
        ({"code": 1022, "wait": 1500}, 0.5),
        ({"message": "code 1021, retry"}, 1.0),  # white space is one
        ({"name": "ab"}, 1.0),  # full width
        ({"a": "made up", "b": ["ERROR", {"c": "invented"}]}, 1 / 3),
        ({"ok": True, "none": None, "level": "ERROR"}, 1.0),  # only texts and numbers count
    ],
)
def test_shares_by_hand(value: Any, share: float) -> None:
    scores = scored(value, {"level": "nowhere"})
    assert scores.values["reference_values_in_prompt"] == pytest.approx(share)
    assert scores.values["candidate_values_in_prompt"] == 0.0


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"ok": True, "list": [], "none": None, "blank": " "}, "no_values"),
        ('{"cut": ', "not_json"),
        (["ERROR"] * (MAX_VALUES + 1), "too_long"),
    ],
)
def test_what_is_unscored_on_that_side_only(value: Any, reason: str) -> None:
    scores = scored({"level": "ERROR"}, value)
    assert scores.unscored["candidate_values_in_prompt"] == reason
    assert scores.values["reference_values_in_prompt"] == 1.0


def test_where_no_json_is_asked_for_or_the_prompt_is_too_long() -> None:
    scores = scored({}, {}, response_format={"type": "text"})
    assert scores.unscored["reference_values_in_prompt"] == "not_expected"
    scores = scored({"a": "b"}, {"a": "b"}, prompt="x" * (MAX_PROMPT_CHARACTERS + 1))
    assert scores.unscored["candidate_values_in_prompt"] == "too_long"


def test_a_tool_call_has_no_text_to_extract_from() -> None:
    body = {"response_format": {"type": "json_object"}}
    both = sides(Observation(tool_calls=(ToolCall("f", "{}"),)), Observation(text='{"a": 1}'), request=body)
    scores = Scores()
    score_grounding(both, score_structure(both, scores).readings, scores)
    assert scores.unscored["reference_values_in_prompt"] == "tool_call"
    assert scores.values["candidate_values_in_prompt"] == 0.0
