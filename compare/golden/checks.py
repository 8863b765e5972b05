r"""What a case asks of an answer beyond its score.

A check is a JSON object whose `check` says its kind:

    {"check": "exact"}
    {"check": "similarity", "measure": "cosine", "least": 0.9}      or "edit"
    {"check": "schema", "schema": { ...a JSON Schema... }}
    {"check": "keys", "keys": [{"path": "$.error.code", "value": 42}]}
    {"check": "pattern", "pattern": "^ERR-\\d+$", "is_absent": false}

Patterns are RE2's: its time is linear in the text, whatever the pattern.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
import re2
from msgspec import Meta

from compare.metrics.structure import JsonReading, field_agreement, is_schema, matches_schema
from ingest.errors import FatalError
from ingest.json_path import parse_path

MAX_PATTERN_CHARACTERS = 1_000
"""Longer patterns are refused."""
MAX_PATTERN_BYTES = 8 * 1024 * 1024
"""Memory of one compiled pattern: `(a{1000}){1000}` is refused by it."""
_SHOWN = 120

CheckKind = Literal["exact", "similarity", "schema", "keys", "pattern"]


class Exact(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="check", tag="exact"):
    """The same text, tool calls and finish reason as expected; Unicode form and outer white space aside."""


class Similarity(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="check", tag="similarity"
):
    """At least so near to the expected answer."""

    measure: Literal["cosine", "edit"]
    least: Annotated[float, Meta(ge=0.0, le=1.0)]


class Schema(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="check", tag="schema"):
    """The answer is JSON and valid under the schema. A `$ref` to another document is not followed."""

    schema: dict[str, Any]


class Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One field: a JSON path of names and indices, and what stands there. 1 and 1.0 are the same."""

    path: str
    value: Any


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="check", tag="keys"):
    """The answer is JSON with these values; what else it holds does not matter."""

    keys: Annotated[list[Key], Meta(min_length=1)]


class Pattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="check", tag="pattern"):
    """The pattern is found anywhere in the answer's text, or with `is_absent` nowhere."""

    pattern: str
    is_absent: bool = False


Check = Exact | Similarity | Schema | Keys | Pattern


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What checks look at. `json` is the answer as JSON; scores are None where they were not measured."""

    text: str
    json: JsonReading
    is_exact: bool | None
    cosine: float | None
    edit: float | None


class Failed(msgspec.Struct, frozen=True):
    """A check that was not met, and why."""

    kind: CheckKind
    reason: str


def read_checks(value: str | bytes) -> tuple[Check, ...]:
    """Decode a JSON array of checks and look each over. Raises ValueError, in words."""
    try:
        checks = msgspec.json.decode(value, type=list[Check])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return checked(checks)


def checked(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return them if each can be run. Raises ValueError, in words."""
    for check in checks:
        if isinstance(check, Pattern):
            _compiled(check.pattern)
        elif isinstance(check, Keys):
            for key in check.keys:
                steps_of(key.path)
        elif isinstance(check, Schema) and not is_schema(check.schema):
            raise ValueError("the JSON Schema of a check is none, or refers to another document")
    return tuple(checks)


def needs_expected(checks: Sequence[Check]) -> bool:
    """Whether one of them compares with an expected answer."""
    return any(isinstance(check, Exact | Similarity) for check in checks)


def steps_of(path: str) -> tuple[str | int, ...]:
    """The names and indices of a path. Raises ValueError for a wildcard, or what is no path."""
    try:
        steps = parse_path(path)
    except ValueError as error:
        raise ValueError(f"path {path!r} {error}") from error
    named = tuple(step for step in steps if isinstance(step, str | int))
    if len(named) != len(steps):
        raise ValueError(f"path {path!r} has a wildcard; a check names one field")
    return named


def value_at(value: Any, path: str) -> Any:
    """What stands at a path. Raises LookupError where there is nothing."""
    for step in steps_of(path):
        if not isinstance(value, dict | list):
            raise LookupError(path)
        try:
            value = value[step]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            raise LookupError(path) from None
    return value


def keys_right(check: Keys, answer: JsonReading) -> tuple[Key, ...]:
    """The fields that the answer has as expected."""
    return tuple(key for key in check.keys if answer.is_valid and _has(answer.value, key))


def failures(checks: Sequence[Check], answered: Answered) -> list[Failed]:
    """The checks that are not met, in order."""
    found = []
    for check in checks:
        reason = _why_not(check, answered)
        if reason is not None:
            found.append(Failed(kind_of(check), reason))
    return found


def kind_of(check: Check) -> CheckKind:
    """The `check` field of its JSON."""
    kinds: Mapping[type[Any], CheckKind] = {
        Exact: "exact", Similarity: "similarity", Schema: "schema", Keys: "keys", Pattern: "pattern",
    }  # fmt: skip
    return kinds[type(check)]


def _why_not(check: Check, answered: Answered) -> str | None:
    if isinstance(check, Exact):
        return None if answered.is_exact else "is not just the expected answer"
    if isinstance(check, Similarity):
        value = answered.cosine if check.measure == "cosine" else answered.edit
        if value is None:
            return f"{check.measure} similarity could not be measured"
        # A Float32 score must not fail a limit that it equals as written.
        return None if value >= check.least - 1e-6 else f"{check.measure} {value:.3f} is under {check.least}"
    if isinstance(check, Pattern):
        is_found = _compiled(check.pattern).search(answered.text.encode("utf-8", "replace")) is not None
        if is_found == check.is_absent:
            return f"pattern {check.pattern[:_SHOWN]!r} {'is' if is_found else 'is not'} found"
        return None
    if not answered.json.is_valid:
        return "is no JSON"
    if isinstance(check, Schema):
        return None if matches_schema(answered.json.value, check.schema) else "is not valid under the schema"
    right = keys_right(check, answered.json)
    wrong = [_wrong(answered.json.value, key) for key in check.keys if key not in right]
    return "; ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "") if wrong else None


def _has(value: Any, key: Key) -> bool:
    try:
        return field_agreement(value_at(value, key.path), key.value).share == 1.0
    except LookupError:
        return False


def _wrong(value: Any, key: Key) -> str:
    expected = _short(key.value)
    try:
        return f"{key.path} is {_short(value_at(value, key.path))}, not {expected}"
    except LookupError:
        return f"{key.path} is missing, not {expected}"


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    """Raises ValueError, in words, where the pattern is refused."""
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise ValueError(
            f"a pattern has {len(pattern)} characters; at most {MAX_PATTERN_CHARACTERS} are allowed"
        )
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PATTERN_BYTES
    try:
        return re2.compile(pattern.encode("utf-8", "replace"), options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(
            f"pattern {pattern[:_SHOWN]!r} is refused ({text}); RE2's syntax has no look-around and no back "
            "references"
        ) from error


def stored_checks(value: str, where: str) -> tuple[Check, ...]:
    """The checks of a stored case. Raises FatalError where this version cannot read them."""
    try:
        return read_checks(value)
    except ValueError as error:
        raise FatalError(f"{where}: its checks cannot be read: {error}") from error
