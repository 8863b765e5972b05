"""JSON and tool calls: each kind of damage under its own code."""

from __future__ import annotations

from typing import Any

import pytest

from compare.detectors.json_diagnosis import MAX_DEPTH, diagnose
from compare.detectors.json_schema import schema_violations
from ingest.observation import ToolCall
from tests.compare.detectors.helpers import families, found, subject

_JSON = {"response_format": {"type": "json_object"}}
_SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "number"}, "lines": {"type": "array", "items": {"type": "integer"}}},
    "required": ["total"],
}
_WITH_SCHEMA = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": _SCHEMA}}}
_TOOLS = [{"type": "function", "function": {"name": "pay", "parameters": _SCHEMA}}]


@pytest.mark.parametrize(
    ("text", "code", "value"),
    [
        ('{"a": 1}', "", {"a": 1}),
        (" \n[1, 2]\n", "", [1, 2]),
        ('{"a": "don\'t"}', "", {"a": "don't"}),
        ('{"a": [1, {"b": "c', "cut", None),
        ('{"a": 1', "cut", None),
        ('```json\n{"a": 1}\n```', "fenced", {"a": 1}),
        ('```\n{"a": 1}\n```', "fenced", {"a": 1}),
        ('{"a": [1, 2,],}', "trailing_comma", {"a": [1, 2]}),
        ('{"a": ", ]"}', "", {"a": ", ]"}),
        ("{'a': True, 'b': None}", "python_literals", {"a": True, "b": None}),
        ('{"a": True}', "python_literals", {"a": True}),
        ('{"a": 1}{"b": 2}', "concatenated", {"a": 1}),
        ('{"a": 1}\n{"b": 2}', "concatenated", {"a": 1}),
        ('Here you are: {"a": 1}', "prose_around", {"a": 1}),
        ('{"a": 1} I hope this helps.', "prose_around", {"a": 1}),
        ('{"a": "one\ntwo"}', "control_character", {"a": "one\ntwo"}),
        ('{"a": NaN}', "non_finite_number", None),
        ('{"a": "{"b": "c"}"', "not_json", None),
        ('{"a": 1, b": 2}', "not_json", None),
        ("I cannot help.", "not_json", None),
        ("[" * (MAX_DEPTH + 1), "too_deep", None),
    ],
)
def test_diagnosis(text: str, code: str, value: object) -> None:
    diagnosis = diagnose(text)
    assert (diagnosis.code, diagnosis.value) == (code, value)
    assert diagnosis.has_value == (value is not None)


@pytest.mark.parametrize(
    ("text", "finish", "body", "codes"),
    [
        ('{"a": 1}', "stop", _JSON, {}),
        ('```json\n{"total": 1}\n```', "stop", _WITH_SCHEMA, {"fenced": True}),
        ('{"total": "1"}', "stop", _WITH_SCHEMA, {"schema_type": True}),
        ("Sorry.", "stop", _JSON, {"not_json": True}),
        ("Sorry.", "stop", {}, {}),
        ('Use {"a": 1,} as input.', "stop", {}, {}),
        ('{"a": "b", "c": ', "stop", {}, {"cut": True}),
        ('{"a": "b", "c": ', "length", {"max_tokens": 7, **_JSON}, {"cut": False}),
        ('{"a": [' + '"gamma", ' * 20, "length", {"max_tokens": 7, **_JSON}, {"cut": True}),
        ('<think>{hm}</think>\n{"a": 1}', "stop", _JSON, {}),
    ],
)
def test_json_findings(text: str, finish: str, body: dict[str, Any], codes: dict[str, bool]) -> None:
    findings = found(subject(text, finish=finish, body=body))
    assert {code: f.is_fault for (family, code), f in findings.items() if family == "json"} == codes


def test_violations_name_their_path() -> None:
    findings = found(subject('{"lines": [1, "2"]}', body=_WITH_SCHEMA))
    assert "/lines/1" in findings[("json", "schema_type")].message
    assert "total" in findings[("json", "schema_missing_key")].message


@pytest.mark.parametrize("schema", [{"type": "no such type"}, {"$ref": "http://127.0.0.1:1/schema.json"}])
def test_a_schema_that_cannot_be_used_judges_nothing(schema: dict[str, Any]) -> None:
    assert schema_violations({"a": 1}, schema) == []


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        ('{"total": 3}', set()),
        ("", {"arguments_schema_missing_key"}),
        ('{"total": "three"}', {"arguments_schema_type"}),
        ("[1]", {"arguments_not_object"}),
        ('{"total": 3}{"total": 9}', {"arguments_concatenated"}),
        ("{'total': 3}", {"arguments_python_literals"}),
        ('{"total": 3, "lines": [1, ', {"arguments_cut"}),
        ('{"total": 3, "note": "<pad><pad>"}', {"reserved_tokens"}),
    ],
)
def test_tool_calls(arguments: str, codes: set[str]) -> None:
    one = subject(tool_calls=(ToolCall("pay", arguments),), finish="tool_calls", body={"tools": _TOOLS})
    assert {code for family, code in found(one) if family == "toolcall"} == codes


def test_a_tool_that_nobody_offered() -> None:
    one = subject(tool_calls=(ToolCall("fly", "{}"),), finish="tool_calls", body={"tools": _TOOLS})
    assert ("toolcall", "unknown_tool") in found(one)


def test_a_call_written_as_text() -> None:
    text = '```json\n{"name": "pay", "arguments": {"total": 1}}\n```'
    assert ("toolcall", "as_text") in found(subject(text, body={"tools": _TOOLS}))
    assert "toolcall" not in families(subject(text))
    assert "toolcall" not in families(subject("You may pay with the tool pay.", body={"tools": _TOOLS}))


def test_a_required_call_that_never_came() -> None:
    one = subject("I will not.", body={"tools": _TOOLS, "tool_choice": "required"})
    assert ("toolcall", "missing") in found(one)
