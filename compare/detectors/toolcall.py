"""Family `toolcall`: calls that cannot be executed, or that were written as text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from compare.detectors.json_diagnosis import diagnose, schema_violations
from compare.detectors.subject import Subject, shorten
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

RESERVED = re.compile(
    r"<unk>|</?s>|<pad>|<mask>|<bos>|<eos>|<unused\d+>|<0x[0-9A-Fa-f]{2}>|<\|[a-z_0-9]{2,40}\|>|\[PAD\d*\]"
)
"""Tokens that a tokenizer keeps for itself and no answer should show."""
_CHANNEL = re.compile(r"<\|channel\|>\s*(?:commentary|analysis)|<tool_call>|<\|tool_call|\[TOOL_CALLS\]")


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `arguments_<json code>`, `arguments_schema`, `reserved_tokens`, `unknown_tool`, `as_text`, ..."""
    if not subject.has_text_to_judge:
        return
    tools = _tools(subject.body)
    for number, call in enumerate(subject.observation.tool_calls):
        yield from _call(subject, number, call.name, call.arguments, tools)
    if not subject.observation.tool_calls:
        yield from _written_as_text(subject, tools)


def _call(
    subject: Subject, number: int, name: str, arguments: str, tools: dict[str, Any]
) -> Iterable[Finding]:
    where = f"tool call {number} ({shorten(name)})"
    if tools and name not in tools:
        yield subject.finding(
            Family.TOOLCALL,
            "unknown_tool",
            f"{where} names no tool of the request: {', '.join(sorted(tools))}",
        )
    if (match := RESERVED.search(arguments)) and match.group() not in subject.prompt:
        yield subject.finding(
            Family.TOOLCALL, "reserved_tokens", f"{where} holds the reserved token {match.group()}"
        )
    diagnosis = diagnose(arguments or "{}")
    if diagnosis.code:
        yield subject.finding(
            Family.TOOLCALL,
            f"arguments_{diagnosis.code}",
            f"the arguments of {where} are no JSON: {diagnosis.message}, {shorten(arguments)}",
        )
    elif not isinstance(diagnosis.value, dict):
        yield subject.finding(
            Family.TOOLCALL, "arguments_not_object", f"the arguments of {where} are no object"
        )
    elif isinstance(schema := tools.get(name), dict):
        for path, message in schema_violations(diagnosis.value, schema)[:1]:
            yield subject.finding(
                Family.TOOLCALL,
                "arguments_schema",
                f"the arguments of {where} break the tool's schema at {path}: {message[:120]}",
            )


def _written_as_text(subject: Subject, tools: dict[str, Any]) -> Iterable[Finding]:
    text = subject.observation.text
    if (match := _CHANNEL.search(text)) and match.group() not in subject.prompt:
        yield subject.finding(
            Family.TOOLCALL,
            "as_text",
            f"a tool call stands in the text as {shorten(match.group())}",
            place="text",
            span=match.span(),
        )
        return
    choice = subject.body.get("tool_choice")
    if tools and choice != "none" and "{" in text and any(name in text for name in tools):
        value = diagnose(text).value
        if (
            isinstance(value, dict)
            and value.get("name") in tools
            and ("arguments" in value or "parameters" in value)
        ):
            yield subject.finding(
                Family.TOOLCALL,
                "as_text",
                f"the call of {value['name']} was written as text",
                place="text",
                span=(0, len(text)),
            )
            return
    if choice == "required" and tools and subject.observation.failure is None and subject.is_finished:
        yield subject.finding(Family.TOOLCALL, "missing", "the request requires a tool call and none came")


def _tools(body: dict[str, Any]) -> dict[str, Any]:
    """The request's tools: name to parameter schema (None where it gives none)."""
    found: dict[str, Any] = {}
    tools = body.get("tools")
    for tool in tools if isinstance(tools, list) else []:
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            found[function["name"]] = function.get("parameters")
    return found
