"""Says what is wrong with a text that should be JSON, and whether the value can still be told."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec

from compare.detectors.nesting import Nesting, nesting

MAX_DEPTH = 200
"""Deeper texts are not parsed: decoders recurse."""
_MAX_VIOLATIONS = 3
# Takes an unclosed string to the end: retrying at each quote in it would be quadratic.
_STRING = re.compile(r'"(?:[^"\\]|\\.?)*+(?:"|\Z)', re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_PYTHON = re.compile(r"\b(?:True|False|None)\b|(?<=[\[{,:\s])'")
_CONTROL = re.compile(r"[\x00-\x1f]")
_OPENING = re.compile(r"[\[{]")
_NON_FINITE = re.compile(r"(?<![\w\"])-?(?:NaN|Infinity)\b")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Diagnosis(NamedTuple):
    """`code` is empty where the text is strict JSON. `has_value` says whether `value` could be told."""

    code: str
    message: str
    value: Any
    has_value: bool
    position: int


def diagnose(text: str) -> Diagnosis:
    """Decode `text`, or name the one thing that keeps it from being JSON.

    Codes: `cut`, `fenced`, `trailing_comma`, `python_literals`, `concatenated`, `prose_around`,
    `control_character`, `non_finite_number`, `too_deep`, `not_json`. Linear in the length.
    """
    stripped = text.strip().removeprefix("\ufeff")
    shift = text.find(stripped[:1]) if stripped else 0
    state = nesting(stripped)
    if state.max_depth > MAX_DEPTH:
        return Diagnosis("too_deep", f"nested {state.max_depth} deep", None, False, shift)
    value, error = _decode(stripped)
    if error is None:
        return Diagnosis("", "", value, True, shift)
    for attempt in (_fenced, _cut, _concatenated, _mended, _prose_around):
        if (found := attempt(stripped, state)) is not None:
            return found._replace(position=found.position + shift)
    return Diagnosis("not_json", error, None, False, shift)


def _decode(text: str) -> tuple[Any, str | None]:
    try:
        return msgspec.json.decode(text), None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return None, str(error)


def _fenced(text: str, _: Nesting) -> Diagnosis | None:
    if not text.startswith("```"):
        return None
    head, _newline, rest = text.partition("\n")
    end = rest.rfind("```")
    inner = rest[:end] if end != -1 else rest
    value, error = _decode(inner)
    if error is None and len(head) < 20:
        return Diagnosis("fenced", "the JSON stands in a Markdown fence", value, True, 0)
    return None


def _cut(text: str, state: Nesting) -> Diagnosis | None:
    if not text or text[0] not in '{["' or not state.is_open or state.first_end is not None:
        return None
    _, error = _decode(text)
    if error is None or "truncated" not in error:
        return None  # it went wrong before its end
    still = "a string" if state.is_in_string else repr(state.open[-8:])
    return Diagnosis("cut", f"the JSON ends with {still} still open", None, False, len(text))


def _concatenated(text: str, state: Nesting) -> Diagnosis | None:
    if not text or text[0] not in "{[" or state.first_end is None or state.first_end >= len(text):
        return None
    value, error = _decode(text[: state.first_end])
    rest = text[state.first_end :].lstrip(" \t\r\n,;")
    if error is not None or not rest:
        return None
    if rest[0] in "{[":
        return Diagnosis(
            "concatenated", "several JSON values follow one another", value, True, state.first_end
        )
    return Diagnosis("prose_around", "text follows the JSON", value, True, state.first_end)


def _mended(text: str, _: Nesting) -> Diagnosis | None:
    """Try the small repairs, each alone."""
    if not text or text[0] not in "{[":
        return None
    if match := _first_control(text):
        escaped = _STRING.sub(lambda found: _CONTROL.sub(_escape, found.group()), text)
        value, error = _decode(escaped)
        if error is None:
            return Diagnosis("control_character", "a raw control character in a string", value, True, match)
    if (comma := _TRAILING_COMMA.search(_blank_strings(text))) is not None:
        value, error = _decode(_without_trailing_commas(text))
        if error is None:
            return Diagnosis("trailing_comma", "a comma before a closing bracket", value, True, comma.start())
    blank = _blank_strings(text)
    if (number := _NON_FINITE.search(blank)) is not None:
        message = f"{number.group()} is no JSON number"
        return Diagnosis("non_finite_number", message, None, False, number.start())
    if (literal := _PYTHON.search(blank)) is not None:
        return Diagnosis("python_literals", "Python literals instead of JSON", None, False, literal.start())
    return None


def _prose_around(text: str, _: Nesting) -> Diagnosis | None:
    opening = _OPENING.search(text)
    end = max(text.rfind("}"), text.rfind("]")) + 1
    if opening is None or opening.start() == 0 or end <= opening.start():
        return None
    value, error = _decode(text[opening.start() : end])
    if error is not None:
        return None
    return Diagnosis("prose_around", "text stands around the JSON", value, True, opening.start())


def _first_control(text: str) -> int | None:
    for match in _STRING.finditer(text):
        if control := _CONTROL.search(match.group()):
            return match.start() + control.start()
    return None


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match.group(), f"\\u{ord(match.group()):04x}")


def _blank_strings(text: str) -> str:
    return _STRING.sub(lambda match: '"' + "_" * (len(match.group()) - 2) + '"', text)


def _without_trailing_commas(text: str) -> str:
    blank = _blank_strings(text)
    drop = {match.start() for match in _TRAILING_COMMA.finditer(blank)}
    return "".join(char for index, char in enumerate(text) if index not in drop)


def schema_violations(value: object, schema: dict[str, Any] | bool) -> list[tuple[str, str]]:
    """Return (JSON pointer, message) of the first violations of a schema; none if the value is valid.

    A schema that is itself invalid, or points outside itself, judges nothing and yields none.
    """
    validator = _validator(msgspec.json.encode(schema, order="sorted"))
    if validator is None:
        return []
    found: list[tuple[str, str]] = []
    for error in validator.iter_errors(value):
        path = "/" + "/".join(str(step) for step in error.instance_path)
        found.append((path, error.message))
        if len(found) == _MAX_VIOLATIONS:
            break
    return found


@lru_cache(maxsize=256)
def _validator(encoded: bytes) -> jsonschema_rs.Validator | None:
    try:
        return jsonschema_rs.validator_for(msgspec.json.decode(encoded), retriever=_refuse)
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


def _refuse(uri: str) -> Any:
    """Mirrored requests are other people's input: their schemas must never make us fetch anything."""
    raise ValueError(f"a schema refers to {uri}, which is not fetched")
