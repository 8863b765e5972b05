"""Structure, usage and echo: kinds of faults and what looks like them."""

from __future__ import annotations

from typing import Any

import pytest

from compare.detectors.json_diagnosis import diagnose
from compare.detectors.subject import Subject
from ingest.observation import Observation, ToolCall
from tests.compare.detectors.helpers import faults, found, subject

_TOOL = {
    "name": "find",
    "parameters": {
        "type": "object",
        "properties": {"q": {"type": "string"}},
        "required": ["q"],
        "additionalProperties": False,
    },
}
_TOOLS: dict[str, Any] = {"tools": [{"type": "function", "function": _TOOL}]}


def _said(text: str, **more: Any) -> Observation:
    return Observation(text=text, finish_reason="stop", **more)


@pytest.mark.parametrize(
    ("text", "code", "value"),
    [
        ("{a: 1}", "unquoted_keys", {"a": 1}),
        ('{"a": 1 // one\n}', "comments", {"a": 1}),
        ("{\u201ca\u201d: 1}", "smart_quotes", {"a": 1}),
        ('{"a": 1\n "b": 2}', "missing_comma", {"a": 1, "b": 2}),
        ('{"a": [1]}}', "extra_closing", {"a": [1]}),
        ("{'a': True,}", "python_literals", {"a": True}),
        ('```json\n{"a": 1,}\n```', "trailing_comma", {"a": 1}),
        ("Here: {'a': 1}.", "prose_around", {"a": 1}),
        ('{"note": "it\'s {fine}, True"}', "", {"note": "it's {fine}, True"}),
    ],
)
def test_small_repairs(text: str, code: str, value: object) -> None:
    diagnosis = diagnose(text)
    assert (diagnosis.code, diagnosis.value, diagnosis.has_value) == (code, value, True)
    assert not code or "(repairable" in diagnosis.said


@pytest.mark.parametrize(
    ("text", "repair"),
    [('{"a": {"b": [1', "append"), ('{"a": "x', "append"), ('{"a":', ""), ('{"a": NaN}', "")],
)
def test_a_cut_says_whether_brackets_mend_it(text: str, repair: str) -> None:
    assert diagnose(text).repair.startswith(repair)
    assert bool(diagnose(text).repair) is bool(repair)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"q": "a", "z": 1}', "schema_extra_key"),
        ("{}", "schema_missing_key"),
        ('{"q": 5}', "schema_type"),
        ('"{\\"q\\": \\"a\\"}"', "double_encoded"),
    ],
)
def test_schema_violations_are_told_apart(text: str, code: str) -> None:
    body = {"guided_json": _TOOL["parameters"]}
    assert set(faults(subject(text, body=body))) == {"json"}
    assert ("json", code) in found(subject(text, body=body))


@pytest.mark.parametrize(
    ("text", "prompt", "other", "is_found"),
    [
        ('```json\n{"a": 1}\n```', "Give JSON only, no markdown.", None, True),
        ('```json\n{"a": 1}\n```', "Show me some JSON.", None, False),
        ('{"a": 1,}', "Answer in JSON.", None, True),
        ("I cannot do that.", "Return only valid JSON.", _said('{"a": 1}'), True),
        ("I cannot do that.", "Return only valid JSON.", _said("Sorry."), False),
        ("I cannot do that.", "Return only valid JSON.", _said('"No."'), False),
        ("{x for x in y} is a set.", "What is this?", None, False),
    ],
)
def test_json_that_was_asked_for_in_words(
    text: str, prompt: str, other: Observation | None, is_found: bool
) -> None:
    assert ("json" in faults(subject(text, prompt=prompt, other=other))) is is_found


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (subject("", tool_calls=(ToolCall("seek", "{}"),), finish="tool_calls", body=_TOOLS), "unknown_tool"),
        (subject("", tool_calls=(ToolCall("", "{}"),), finish="tool_calls", body=_TOOLS), "unnamed"),
        (
            subject("", tool_calls=(ToolCall("find", '"{\\"q\\": \\"a\\"}"'),), finish="tool_calls"),
            "arguments_double_encoded",
        ),
        (
            subject(
                "", tool_calls=(ToolCall("find", '{"q": "a", "n": 1}'),), finish="tool_calls", body=_TOOLS
            ),
            "arguments_schema_extra_key",
        ),
        (subject("Let me see.", finish="tool_calls", body=_TOOLS), "missing"),
        (subject('find(q="x")', body=_TOOLS), "as_text"),
        (subject("Action: find\nAction Input: x", body=_TOOLS), "as_text"),
        (subject('<function=find>{"q": "x"}</function>', body=_TOOLS), "as_text"),
        (subject('I will look.\n{"name": "find", "parameters": {"q": "x"', body=_TOOLS), "as_text"),
        (subject('[TOOL_CALLS][{"name": "find"}]'), "as_text"),
    ],
)
def test_tool_calls(one: Subject, code: str) -> None:
    assert found(one)[("toolcall", code)].is_fault


@pytest.mark.parametrize(
    "one",
    [
        subject("I would use find() for that.", body=_TOOLS),
        subject("Write `<tool_call>` before it.", prompt="How do templates mark calls?"),
        subject(
            '```json\n{"name": "find", "arguments": {"q": "x"}}\n```\nThat is how such a call looks.',
            body=_TOOLS,
        ),
        subject("", tool_calls=(ToolCall("find", '{"q": "a"}'),), finish="stop", body=_TOOLS),
    ],
)
def test_what_only_looks_like_a_call(one: Subject) -> None:
    assert "toolcall" not in faults(one)


@pytest.mark.parametrize(
    ("one", "code", "is_fault"),
    [
        (subject("It", finish="abort"), "aborted", True),
        (subject("It", finish="timeout"), "aborted", True),
        (subject("It", finish="connection_closed"), "aborted", True),
        (subject("It", finish="content_filter"), "filtered", False),
        (subject("It is.", completion_tokens=80, body={"max_tokens": 16}), "limit_ignored", False),
        (
            subject("It is.", prompt_tokens=2048, other=_said("It is.", prompt_tokens=3391)),
            "prompt_cut",
            True,
        ),
        (subject("It is.", prompt="One two three. " * 2000, prompt_tokens=2048), "prompt_cut", True),
        (subject("It is.", notes=("prompt_truncated",)), "prompt_cut", True),
        (subject("It", finish="length", prompt_tokens=4000, completion_tokens=96), "context_full", False),
        (
            subject(
                "It", finish="length", prompt_tokens=4000, completion_tokens=96, other=_said("It is noon.")
            ),
            "context_full",
            True,
        ),
        (subject("analysisWe need a city.assistantfinalOslo"), "channel_leak", False),
        (subject("[THINK] so be it"), "open_thinking", True),
        (subject("so be it</think>Oslo"), "thinking_leak", False),
    ],
)
def test_truncation(one: Subject, code: str, is_fault: bool) -> None:
    assert found(one)[("truncation", code)].is_fault is is_fault


@pytest.mark.parametrize(
    "one",
    [
        subject("It is.", prompt_tokens=40, other=_said("It is.", prompt_tokens=52)),
        subject("It is.", prompt=" " * 9000 + "When?", prompt_tokens=40),
        subject("Put it in `<think>` tags."),
        subject("The assistant's final answer and analysis."),
        subject("It is.", completion_tokens=17, body={"max_tokens": 16}),
    ],
)
def test_what_only_looks_like_truncation(one: Subject) -> None:
    assert not {code for family, code in found(one) if family == "truncation"}


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (subject("\u200b\u200b \ufeff"), "blank"),
        (subject("<think>\nhm\n</think>\n\n"), "thinking_only"),
        (subject("user: Tell me of the ferry.", prompt="Tell me of the ferry."), "echo"),
        (
            subject("Tell me of the ferry. Tell me of the ferry. Tell me", prompt="Tell me of the ferry."),
            "echo",
        ),
    ],
)
def test_empty(one: Subject, code: str) -> None:
    assert found(one)[("empty", code)].is_fault


@pytest.mark.parametrize(
    "one",
    [
        subject("Tell me of the ferry. It leaves at noon.", prompt="Tell me of the ferry."),
        subject("The ferry leaves at noon.", prompt="Fix the spelling: The ferry leaves at noon."),
        subject("0"),
    ],
)
def test_what_only_looks_empty(one: Subject) -> None:
    assert "empty" not in faults(one)
