"""Family `toolcall`: calls that cannot be executed, or that were written as text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from compare.detectors.facts import Part
from compare.detectors.json_diagnosis import diagnose
from compare.detectors.json_schema import schema_violations
from compare.detectors.leaks import reserved_in
from compare.detectors.subject import Subject, shorten
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_MARKUP = re.compile(
    r"<\|channel\|>\s*commentary|<\|(?:start|channel)\|>[^<]{0,60}\bto=|</?tool_calls?>|<\|/?tool_?calls?"
    r"|\[TOOL_CALLS?\]|<function=|</?function_calls?>|<\|python_tag\|>|functools\[|<\uff5ctool|<tool_use>"
    r"|<invoke name=|<\|tool|\u2581calls?\u2581begin|\u273fFUNCTION\u273f|<\|?action_start"
    r"|<(?:minimax|seed|antml):|\bto=functions\.\w+"
)
_MARKS = ("<", "[TOOL_CALL", "functools[", "\u2581call", "\u273fFUNCTION", "to=functions.")
"""One of them is in whatever `_MARKUP` finds."""
_REACT = re.compile(r"^Action:[ \t]*(\S+)\s*+Action Input:", re.MULTILINE)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_LETTERS = re.compile(r"[^\W\d_]{3,}")
_TAG = re.compile(r"<[^<>]{0,100}>")
_ASKS_EXAMPLE = re.compile(
    r"\b(?:example|looks? like|don't call|do not call|without calling|show me (?:the|a|what)|explain|describe"
    r"|document)\b",
    re.IGNORECASE,
)
_ARGUMENTS = ("arguments", "parameters", "args", "input", "kwargs")
_FINISHED_WITH_CALL = ("tool_calls", "function_call", "tool_use")


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `arguments_<json code>`, `arguments_schema_<kind>`, `unknown_tool`, `as_text`, `missing`, ..."""
    if not subject.has_text_to_judge:
        return
    observation = subject.observation
    tools = _tools(subject.body)
    for number, call in enumerate(observation.tool_calls):
        yield from _call(subject, number, call.name, call.arguments, tools)
    leaked = list(_written_as_text(subject, tools))
    yield from leaked
    if observation.tool_calls or leaked or observation.failure is not None:
        return
    if (observation.finish_reason or "").lower() in _FINISHED_WITH_CALL:
        yield subject.finding(
            Family.TOOLCALL, "missing", f"the server says {observation.finish_reason!r} and no call came"
        )
    elif _is_call_required(subject.body) and tools and subject.is_finished:
        yield subject.finding(Family.TOOLCALL, "missing", "the request requires a tool call and none came")


def _call(
    subject: Subject, number: int, name: str, arguments: str, tools: dict[str, Any]
) -> Iterable[Finding]:
    where = f"tool call {number} ({shorten(name)})"
    if not name.strip():
        yield subject.finding(Family.TOOLCALL, "unnamed", f"tool call {number} has no name")
    elif tools and name not in tools:
        yield subject.finding(
            Family.TOOLCALL,
            "unknown_tool",
            f"{where} names no tool of the request: {', '.join(sorted(tools))[:200]}",
        )
    elif not tools and not name.isascii() or any(mark in name for mark in "<>{}|\n "):
        yield subject.finding(Family.TOOLCALL, "odd_name", f"{where} has a name that no tool has")
    forced = _forced_tool(subject.body)
    if forced is not None and name.strip() and name != forced:
        yield subject.finding(
            Family.TOOLCALL, "other_tool", f"{where} is not {forced!r}, which the request demands"
        )
    if hits := reserved_in(subject, Part(f"arguments of tool call {number}", arguments)):
        yield subject.finding(
            Family.TOOLCALL, "reserved_tokens", f"{where} holds the reserved token {hits[0].group()}"
        )
    diagnosis = diagnose(arguments or "{}")
    if diagnosis.code:
        yield subject.finding(
            Family.TOOLCALL,
            f"arguments_{diagnosis.code}",
            f"the arguments of {where} are no JSON: {diagnosis.said}, {shorten(arguments)}",
        )
        return
    if isinstance(diagnosis.value, str) and isinstance(diagnose(diagnosis.value).value, dict):
        yield subject.finding(
            Family.TOOLCALL,
            "arguments_double_encoded",
            f"the arguments of {where} are a string that holds JSON (repairable: decode it)",
        )
    elif not isinstance(diagnosis.value, dict):
        yield subject.finding(
            Family.TOOLCALL, "arguments_not_object", f"the arguments of {where} are no object"
        )
    elif isinstance(schema := tools.get(name), dict):
        for violation in schema_violations(diagnosis.value, schema)[:1]:
            yield subject.finding(
                Family.TOOLCALL,
                f"arguments_{violation.code}",
                f"the arguments of {where} break the tool's schema at {violation.path}: "
                f"{violation.message[:120]} (not repairable)",
            )


def _written_as_text(subject: Subject, tools: dict[str, Any]) -> Iterable[Finding]:
    """Find a call in the answer's text or reasoning that the server's parser let through."""
    for part in subject.parts:
        if part.place not in ("text", "reasoning"):
            continue
        if (span := _leak(subject, part, tools)) is not None:
            said = shorten(part.text[span[0] : span[1]])
            yield subject.finding(
                Family.TOOLCALL,
                "as_text",
                f"a tool call stands in the text as {said}",
                place=part.place,
                span=span,
            )
            return


def _leak(subject: Subject, part: Part, tools: dict[str, Any]) -> tuple[int, int] | None:
    text = part.text
    # What stands in code is being talked about, unless the request has tools to call.
    is_code = "`" in text and not tools
    shown = _CODE.sub(lambda match: " " * len(match.group()), text) if is_code else text
    match = _MARKUP.search(shown) if any(mark in shown for mark in _MARKS) else None
    if match is not None and match.group() not in subject.prompt:
        return match.span()
    if not tools or part.place != "text":
        return None
    if (react := _REACT.search(text)) and react.group(1) in tools:
        return react.span()
    named = [name for name in tools if name in text]
    if not named:
        return None
    bare = text.strip().removesuffix("```").rstrip()
    if bare.startswith("```"):
        bare = bare.partition("\n")[2].lstrip()
    for name in named:
        # As a call in Python's manner, the whole answer through.
        if re.fullmatch(rf"\[?\s*(?:print\()?{re.escape(name)}\(.*\)\s*\]?", bare, re.DOTALL):
            return 0, len(text)
        at = re.search(
            rf'["\'](?:name|function|tool|action|tool_name)["\']\s*:\s*["\']{re.escape(name)}["\']', text
        )
        if at is not None and any(f'"{key}"' in text or f"'{key}'" in text for key in _ARGUMENTS):
            after = text[at.end() :]
            closed = after[after.rfind("}") + 1 :] if "}" in after else ""
            # Prose after it makes it an example; a call that the parser let through ends the answer.
            if not _LETTERS.search(_TAG.sub("", closed)) and not _ASKS_EXAMPLE.search(subject.last_user_text):
                return at.span()
    value = diagnose(text).value if subject.body.get("tool_choice") != "none" and "{" in text else None
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in tools:
        return 0, len(text)
    return None


def _is_call_required(body: dict[str, Any]) -> bool:
    return body.get("tool_choice") in ("required", "any") or _forced_tool(body) is not None


def _forced_tool(body: dict[str, Any]) -> str | None:
    choice = body.get("tool_choice")
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def _tools(body: dict[str, Any]) -> dict[str, Any]:
    """The request's tools: name to parameter schema (None where it gives none)."""
    found: dict[str, Any] = {}
    for key in ("tools", "functions"):
        tools = body.get(key)
        for tool in tools if isinstance(tools, list) else []:
            function = tool.get("function", tool) if isinstance(tool, dict) else None
            if isinstance(function, dict) and isinstance(function.get("name"), str):
                found[function["name"]] = function.get("parameters")
    return found
