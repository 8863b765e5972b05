from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.structure import ExpectedStructure, expects_json
from tests.ingest.test_request import JSON

SCHEMA = {"type": "object", "properties": {"level": {"type": "string"}}, "required": ["level"]}
TEXT = json.dumps(SCHEMA)


def system(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": content}, {"role": "user", "content": "x"}]}


@pytest.mark.parametrize(
    ("body", "source"),
    [
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}},
            "response_format",
        ),
        ({"response_format": {"type": "json_schema", "schema": SCHEMA}}, "response_format"),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, "response_format"),
        ({"structured_outputs": {"json": SCHEMA}}, "structured_outputs"),
        ({"structured_outputs": {"json": TEXT}}, "structured_outputs"),
        ({"guided_json": SCHEMA}, "guided_json"),
        ({"guided_json": TEXT}, "guided_json"),
        ({"json_schema": SCHEMA}, "json_schema"),
        ({"format": SCHEMA}, "format"),
    ],
)
def test_enforced_schema(body: dict[str, Any], source: str) -> None:
    assert expects_json(body) == ExpectedStructure("json_schema", SCHEMA, True, source)


@pytest.mark.parametrize(
    ("body", "source"),
    [
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": 7}}, "response_format"),
        ({"structured_outputs": {"json_object": True}}, "structured_outputs"),
        ({"guided_json": "{not json"}, "guided_json"),
        ({"format": "json"}, "format"),
    ],
)
def test_json_without_a_schema(body: dict[str, Any], source: str) -> None:
    assert expects_json(body) == ExpectedStructure("json_object", None, True, source)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"response_format": {"type": "text"}},
        {"response_format": None},
        {"structured_outputs": {"regex": "a+"}},
        {"messages": [{"role": "user", "content": TEXT}]},
        system("Answer as {name}, with {} or {'a': 1}."),
        system('An example: {"properties": 3, "type": "object"}'),
        system('Example answer: {"properties": {"a": 1}}'),
    ],
)
def test_nothing_asked_for(body: dict[str, Any]) -> None:
    assert expects_json(body) == ExpectedStructure()


@pytest.mark.parametrize(
    "content",
    [
        TEXT,
        f"Use {{braces}} and reply by this schema:\n```json\n{json.dumps(SCHEMA, indent=2)}\n```\nNo more.",
        f'For {{"level": "warn"}} see {TEXT}',
        [{"type": "text", "text": "Schema:"}, {"type": "text", "text": TEXT}],
        json.dumps({"name": "n", "schema": SCHEMA}),
    ],
)
def test_schema_in_a_system_message_is_unenforced(content: Any) -> None:
    assert expects_json(system(content)) == ExpectedStructure("json_schema", SCHEMA, False, "system message")


def test_schema_of_the_prompt_completes_json_object() -> None:
    body = system(TEXT) | {"response_format": {"type": "json_object"}}
    assert expects_json(body) == ExpectedStructure("json_schema", SCHEMA, False, "system message")


def test_enforced_schema_wins_over_the_prompt() -> None:
    other = {"type": "object", "properties": {}}
    assert expects_json(system(TEXT) | {"guided_json": other}).schema == other


def test_hostile_prompt_is_read_a_bounded_number_of_times() -> None:
    # Each of these braces opens an object that never closes.
    hostile = '{"properties":' * 4000
    assert expects_json(system(hostile + TEXT)) == ExpectedStructure()


FIELDS = ["response_format", "structured_outputs", "guided_json", "json_schema", "format", "messages"]
INNER = st.dictionaries(st.sampled_from(["type", "json", "schema", "json_schema", "json_object"]), JSON)


@given(st.dictionaries(st.sampled_from(FIELDS), JSON | INNER))
def test_odd_types_never_raise(body: dict[str, Any]) -> None:
    assert isinstance(expects_json(body), ExpectedStructure)
