"""Two answers as JSON, path by path, and where each breaks its schema."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from compare.detectors.json_diagnosis import diagnose
from compare.detectors.json_schema import schema_violations
from compare.metrics.structure import leaves_by_path, read_json, repaired
from ingest.structure import expects_json

MAX_PATHS = 1_000
ABSENT = "—"


class JsonSide(NamedTuple):
    """One text as JSON: `state` is valid, repaired, broken or empty, with what broke it; `errors` against the
    request's own schema, by JSON pointer.
    """

    state: str
    why: str
    value: Any
    errors: list[tuple[str, str]]


def json_side(text: str, schema: dict[str, Any] | None) -> JsonSide:
    """Read one answer. What is broken is repaired where that gives an object or a list."""
    if not text.strip():
        return JsonSide("empty", "", None, [])
    reading = read_json(text)
    if reading.is_valid:
        found = schema_violations(reading.value, schema) if schema is not None else []
        return JsonSide("valid", "", reading.value, [(one.path, one.message) for one in found])
    why = diagnose(text).message
    value = repaired(text)
    return JsonSide("broken" if value is None else "repaired", why, value, [])


def schema_of(body: str) -> dict[str, Any] | None:
    """The schema that the request itself carries, None for none. A route's own is not known here."""
    try:
        request = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return None
    return expects_json(request).schema if isinstance(request, dict) else None


def by_path(reference: JsonSide, candidate: JsonSide) -> pd.DataFrame:
    """path, reference, candidate (JSON text, ABSENT where a side lacks it), differs; the differing first."""
    left, right = _leaves(reference), _leaves(candidate)
    # Leaves, not their texts, as the scores have it: 1 and 1.0 are equal.
    rows = [
        (path, _written(left.get(path)), _written(right.get(path)), left.get(path) != right.get(path))
        for path in dict.fromkeys([*left, *right])
    ]
    table = pd.DataFrame(rows, columns=["path", "reference", "candidate", "differs"])
    return table.sort_values("differs", ascending=False, kind="stable", ignore_index=True)


def tool_calls_by_path(reference: list[tuple[str, str]], candidate: list[tuple[str, str]]) -> pd.DataFrame:
    """The same of tool calls, (name, arguments) in their order."""
    return by_path(_calls(reference), _calls(candidate))


def _calls(calls: list[tuple[str, str]]) -> JsonSide:
    value = []
    for name, arguments in calls:
        reading = read_json(arguments)
        value.append({"name": name, "arguments": reading.value if reading.is_valid else arguments})
    return JsonSide("valid", "", {"tool_calls": value} if value else None, [])


def _leaves(side: JsonSide) -> dict[str, tuple[Any, ...]]:
    """In the order of the text: the walk gives the last first."""
    return {} if side.value is None else dict(list(leaves_by_path(side.value).items())[::-1])


def _written(leaf: tuple[Any, ...] | None) -> str:
    if leaf is None:
        return ABSENT
    if len(leaf) == 1:
        return "{}" if leaf[0] == "dict" else "[]"
    return json.dumps(leaf[1], ensure_ascii=False)
