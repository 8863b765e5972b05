"""Whether an answer has the structure that its request asks for, and how far the two agree in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec

from compare.metrics.sides import Sides
from compare.result import Scores
from ingest.observation import Observation, ToolCall
from ingest.request import ExpectedStructure, expects_json

REPAIR_MAX_CHARACTERS = 4_000
"""json-repair's time grows with the square of some inputs: 7,000 characters can take 10 seconds."""

_LONGEST_INTEGER = 4_000
_SCHEMAS_KEPT = 512


class JsonReading(NamedTuple):
    """Whether a text is JSON (RFC 8259, outer white space allowed) and the value if it is."""

    is_valid: bool
    value: Any = None


class StructureReading(NamedTuple):
    """The two answers as JSON, None where none is asked for or there is no text; the paths that differ."""

    readings: tuple[JsonReading | None, JsonReading | None]
    differing: tuple[str, ...] = ()


class FieldAgreement(NamedTuple):
    """Share of leaves that agree, and the JSON paths of those that do not, sorted."""

    share: float
    differing: tuple[str, ...]


def score_structure(sides: Sides, scores: Scores) -> StructureReading:
    """Put the structure scores and return what was read, with the JSON paths where the two values differ.

    `field_agreement` is conditional on the reference being JSON. A candidate that is none agrees in
    no field: a reader's parser gets nothing from it.
    """
    expected = sides.expected or expects_json(sides.request)
    readings: list[JsonReading | None] = []
    for name, observation in (("reference", sides.reference), ("candidate", sides.candidate)):
        reading, reason = _reading(observation, expected)
        readings.append(reading)
        valid, schema_valid = f"{name}_is_valid_json", f"{name}_is_schema_valid"
        if reading is None:
            scores.skip(valid, reason)
            scores.skip(schema_valid, reason)
            continue
        scores.put(valid, float(reading.is_valid))
        _put_schema(schema_valid, reading, expected, scores)
    reference, candidate = readings
    differing: tuple[str, ...] = ()
    if reference is None or candidate is None:
        failed = "reference_is_valid_json" if reference is None else "candidate_is_valid_json"
        scores.skip("field_agreement", scores.unscored[failed])
    elif not reference.is_valid:
        scores.skip("field_agreement", "reference_not_json")
    elif not candidate.is_valid:
        scores.put("field_agreement", 0.0)
        differing = ("$",)
    else:
        agreement = field_agreement(reference.value, candidate.value)
        scores.put("field_agreement", agreement.share)
        differing = agreement.differing
    return StructureReading((reference, candidate), differing)


def read_json(text: str) -> JsonReading:
    """Parse strictly: no NaN, no comments, no trailing text. Never raises.

    Nesting too deep for the parser (about a thousand levels) counts as not parseable: so it is for
    the readers of the answer.
    """
    try:
        return JsonReading(True, json.loads(text, parse_constant=_refuse, parse_int=_integer))
    except (ValueError, RecursionError):
        return JsonReading(False)


def repaired(text: str) -> Any | None:
    """Return the object or list that json-repair makes of a text, None where it makes none of it.

    Only up to `REPAIR_MAX_CHARACTERS`; longer texts return None.
    """
    if len(text) > REPAIR_MAX_CHARACTERS:
        return None
    try:
        import json_repair  # the service's own process, which loads this module, repairs nothing

        value: Any = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) and value else None


def matches_schema(value: Any, schema: Mapping[str, Any]) -> bool | None:
    """Return whether a value is valid under a JSON Schema; None where the schema itself is broken.

    A `$ref` to another document is never fetched: such a schema counts as broken.
    """
    try:
        validator = _validator(msgspec.json.encode(schema, order="sorted"))
    except (TypeError, OverflowError, RecursionError):
        return None
    return None if validator is None else validator.is_valid(value)


def is_schema(schema: Mapping[str, Any]) -> bool:
    """Return whether a JSON Schema can be used."""
    return matches_schema(None, schema) is not None


def fields_right(expected: Any, answer: Any) -> tuple[int, int]:
    """Return how many leaves of `expected` the answer has at the same path, and how many there are."""
    wanted, given = leaves_by_path(expected), leaves_by_path(answer)
    return sum(given.get(path, _ABSENT) == leaf for path, leaf in wanted.items()), len(wanted)


def field_agreement(a: Any, b: Any) -> FieldAgreement:
    """Compare two JSON values leaf by leaf.

    The share is equal leaves over all paths that either has. `1` and `1.0` are equal, `true` and `1`
    are not; an empty object or list is a leaf.
    """
    left, right = leaves_by_path(a), leaves_by_path(b)
    paths = left.keys() | right.keys()
    differing = sorted(path for path in paths if left.get(path, _ABSENT) != right.get(path, _ABSENT))
    return FieldAgreement(1.0 - len(differing) / len(paths), tuple(differing))


def leaf_values(value: Any) -> list[Any]:
    """Return the texts, numbers, booleans and nulls of a JSON value."""
    return [leaf[1] for leaf in leaves_by_path(value).values() if len(leaf) > 1]


def same_tool_calls(a: tuple[ToolCall, ...], b: tuple[ToolCall, ...]) -> bool:
    """Return whether names and arguments agree, in order; arguments as JSON where both are, else as text."""
    if [call.name for call in a] != [call.name for call in b]:
        return False
    return all(_same_json(x.arguments, y.arguments) for x, y in zip(a, b, strict=True))


def _reading(observation: Observation, expected: ExpectedStructure) -> tuple[JsonReading | None, str]:
    """Read one answer; without a reading, say why."""
    if expected.kind is None:
        return None, "not_expected"
    if not observation.has_answer:
        return None, "no_answer"
    if observation.tool_calls and not observation.text.strip():
        return None, "tool_call"
    return read_json(observation.text), ""


def _put_schema(name: str, reading: JsonReading, expected: ExpectedStructure, scores: Scores) -> None:
    if expected.schema is None:
        scores.skip(name, "no_schema")
        return
    is_valid = matches_schema(reading.value, expected.schema)
    if is_valid is None:
        scores.skip(name, "bad_schema")
    else:
        scores.put(name, float(reading.is_valid and is_valid))


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _integer(digits: str) -> int | float:
    """Read an integer; one too long for Python's parser is legal JSON and becomes a float."""
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


@lru_cache(maxsize=_SCHEMAS_KEPT)
def _validator(schema: bytes) -> jsonschema_rs.Validator | None:
    try:
        return jsonschema_rs.validator_for(msgspec.json.decode(schema), offline=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, RecursionError):
        return None


_ABSENT = ("absent",)


def leaves_by_path(value: Any) -> dict[str, tuple[Any, ...]]:
    """Return every leaf by JSON path (`$.a[0]['b c']`): (type, value), so that true is not 1.

    An empty object or array is (`dict`,) or (`list`,).
    """
    leaves: dict[str, tuple[Any, ...]] = {}
    waiting = [("$", value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, dict) and item:
            waiting += [(path + _step(key), child) for key, child in item.items()]
        elif isinstance(item, list) and item:
            waiting += [(f"{path}[{index}]", child) for index, child in enumerate(item)]
        elif isinstance(item, dict | list):
            leaves[path] = (type(item).__name__,)
        else:
            is_number = isinstance(item, int | float) and not isinstance(item, bool)
            leaves[path] = ("number" if is_number else type(item).__name__, item)
    return leaves


def _step(key: str) -> str:
    if key.isidentifier():
        return f".{key}"
    quoted = key.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{quoted}']"


def _same_json(a: str, b: str) -> bool:
    left, right = read_json(a), read_json(b)
    if left.is_valid and right.is_valid:
        return leaves_by_path(left.value) == leaves_by_path(right.value)
    return a.strip() == b.strip()
