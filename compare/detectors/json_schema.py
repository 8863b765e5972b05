"""Holds a value against a JSON Schema that came with somebody's request."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec

_MAX_VIOLATIONS = 3


class Violation(NamedTuple):
    """One place where a value breaks its schema. `code` tells the kinds apart."""

    code: str
    path: str
    message: str


_KINDS = {
    "type": "schema_type",
    "required": "schema_missing_key",
    "additionalProperties": "schema_extra_key",
    "unevaluatedProperties": "schema_extra_key",
    "enum": "schema_value",
    "const": "schema_value",
}


def schema_violations(value: object, schema: dict[str, Any] | bool) -> list[Violation]:
    """Return the first violations of a schema; none if the value is valid.

    Codes: `schema_type`, `schema_missing_key`, `schema_extra_key`, `schema_value` (enum, const), and
    `schema_invalid` for any other rule. `path` is a JSON pointer. A schema that is itself invalid, or
    points outside itself, judges nothing and yields none.
    """
    validator = _validator(msgspec.json.encode(schema, order="sorted"))
    if validator is None:
        return []
    found: list[Violation] = []
    for error in validator.iter_errors(value):
        path = "/" + "/".join(str(step) for step in error.instance_path)
        code = _KINDS.get(error.kind.name, "schema_invalid")
        found.append(Violation(code, path, error.message))
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
