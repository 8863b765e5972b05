from __future__ import annotations

from typing import Any

import pytest

from compare.metrics.structure import (
    REPAIR_MAX_CHARACTERS,
    field_agreement,
    matches_schema,
    read_json,
    repaired,
    same_tool_calls,
    score_structure,
)
from compare.result import Scores
from ingest.observation import Failure, FailureKind, Observation, ToolCall
from tests.compare.metrics.reports import sides

SCHEMA = {"type": "object", "properties": {"code": {"type": "integer"}}, "required": ["code"]}
NAMES = {
    "field_agreement",
    "reference_is_valid_json",
    "candidate_is_valid_json",
    "reference_is_schema_valid",
    "candidate_is_schema_valid",
}


def asked(schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}


def scored(a: str, b: str, request: dict[str, Any]) -> tuple[Scores, tuple[str, ...]]:
    scores = Scores()
    read = score_structure(sides(Observation(text=a), Observation(text=b), request=request), scores)
    return scores, read.differing


def test_valid_and_equal() -> None:
    scores, paths = scored('{"code": 1}', ' {"code": 1.0}\n', asked(SCHEMA))
    assert scores.values == dict.fromkeys(NAMES, 1.0)
    assert paths == ()


def test_candidate_that_is_no_json_agrees_in_no_field() -> None:
    scores, paths = scored('{"code": 1}', '{"code": 1', asked(SCHEMA))
    assert scores.values["candidate_is_valid_json"] == 0.0
    assert scores.values["candidate_is_schema_valid"] == 0.0
    assert scores.values["field_agreement"] == 0.0
    assert paths == ("$",)


def test_agreement_is_conditional_on_the_reference() -> None:
    scores, _ = scored("no", '{"code": 1}', asked(SCHEMA))
    assert scores.unscored == {"field_agreement": "reference_not_json"}
    assert scores.values["reference_is_valid_json"] == 0.0
    assert scores.values["candidate_is_schema_valid"] == 1.0


def test_json_without_a_schema() -> None:
    scores, _ = scored("[1]", "[2]", {"response_format": {"type": "json_object"}})
    assert scores.unscored == {
        "reference_is_schema_valid": "no_schema",
        "candidate_is_schema_valid": "no_schema",
    }
    assert scores.values["field_agreement"] == 0.0


def test_no_json_asked_for() -> None:
    scores, _ = scored("{}", "{}", {"messages": []})
    assert scores.unscored == dict.fromkeys(NAMES, "not_expected")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"$ref": "http://127.0.0.1:9/never.json"},
        {"properties": {"code": {"$ref": "file:///etc/hostname"}}},
        {"$ref": "#/$defs/missing"},
        {"pattern": "("},
    ],
)
def test_a_broken_schema_is_said_and_nothing_is_fetched(schema: dict[str, Any]) -> None:
    scores, _ = scored('{"code": 1}', '{"code": 1}', asked(schema))
    assert scores.unscored["reference_is_schema_valid"] == "bad_schema"
    assert scores.values["field_agreement"] == 1.0
    assert matches_schema({}, schema) is None


def test_failures_and_tool_calls_have_no_text_to_read() -> None:
    failed = Observation(failure=Failure(FailureKind.IDLE_TIMEOUT, "30 s"))
    called = Observation(tool_calls=(ToolCall("f", "{}"),))
    scores = Scores()
    score_structure(sides(failed, called, request=asked(SCHEMA)), scores)
    assert scores.unscored["reference_is_valid_json"] == "no_answer"
    assert scores.unscored["candidate_is_schema_valid"] == "tool_call"
    assert scores.unscored["field_agreement"] == "no_answer"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NaN", False),
        ("[1, Infinity]", False),
        ('{"a": 1} trailing', False),
        ("```json\n{}\n```", False),
        ("", False),
        ("[" * 100_000, False),
        ("[" * 100_000 + "]" * 100_000, False),
        ("1" + "0" * 10_000, True),
        ('"\\ud800"', True),
        ("null", True),
    ],
)
def test_strict_parsing(text: str, expected: bool) -> None:
    assert read_json(text).is_valid is expected


def test_fields_by_path() -> None:
    a = {"id": 7, "tags": ["x", "y"], "on": True, "meta": {}, "the key": None}
    b = {"id": 7.0, "tags": ["x", "z", "w"], "on": 1, "meta": {}, "other": None}
    agreement = field_agreement(a, b)
    # Paths: id, tags[0], tags[1], tags[2], on, meta, 'the key', other; equal: id, tags[0], meta.
    assert agreement.differing == ("$.on", "$.other", "$.tags[1]", "$.tags[2]", "$['the key']")
    assert agreement.share == pytest.approx(3 / 8)
    assert field_agreement(b, a).share == agreement.share
    assert field_agreement({}, {}).share == 1.0
    assert field_agreement({}, []).differing == ("$",)


def test_repair() -> None:
    assert repaired('{"code": 1, "tags": ["x"') == {"code": 1, "tags": ["x"]}
    assert repaired("just words") is None
    assert repaired('{"a": "' + "x" * REPAIR_MAX_CHARACTERS) is None


def test_tool_calls_agree_as_json() -> None:
    a = (ToolCall("f", '{"x": 1, "y": [2]}', "id-1"),)
    assert same_tool_calls(a, (ToolCall("f", '{"y":[2],"x":1.0}', "id-2"),))
    assert not same_tool_calls(a, (ToolCall("f", '{"x": 2, "y": [2]}'),))
    assert not same_tool_calls(a, (ToolCall("g", a[0].arguments),))
    assert not same_tool_calls(a, ())
    assert same_tool_calls((ToolCall("f", "{bad "),), (ToolCall("f", "{bad"),))
