"""From plain TOML values to the typed settings, with every error placed to the key.

msgspec converts the values; the walk is ours, because msgspec's own message names a key of a
table as `[...]` and does not say which values a field allows.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from ingest.errors import SettingsError
from ingest.settings import Settings

SECRETS = frozenset({"password", "api_key", "key", "secret", "secret_url"})
"""Field names that come from the environment only and are never shown."""

_LONGEST_VALUE = 80
_PATTERNS = {
    r"^[^\s/]+$": "a host's name or address",
    r"^[^@\s,;<>\"\x00-\x1f\x7f]+@[^@\s,;<>\"\x00-\x1f\x7f]+$": "a mail address like name@example.com",
    r"^[a-zA-Z_][a-zA-Z0-9_]*$": "a label's name: letters, digits and _",
    r"^[a-zA-Z_:][a-zA-Z0-9_:]*$": "a metric's name",
    r"^(/\S*)?$": "a path that starts with /, or empty",
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$": "a name of up to 64 letters, digits and . _ - that starts with one",
    r"^(https?://[^/\s]+|chdb:///\S+)$": "http://HOST:PORT, https://HOST:PORT or chdb:///FOLDER",
    r"^https?://[^/\s]+(/\S*)?$": "a URL that starts with http:// or https://",
    r"^[^\s#]+$": "an address without spaces and #",
    r"^https?://\S+$": "a URL that starts with http:// or https://",
}

Path = tuple[str, ...]


class InvalidValueError(SettingsError):
    """A value that the settings refuse: where it stands, and what is wrong in one line."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(problem)
        self.path = path
        self.problem = problem


def to_settings(tree: dict[str, Any]) -> Settings:
    """The settings of a nested dict. Raises InvalidValueError at the first fault."""
    settings: Settings = _struct(tree, Settings, ())
    return settings


def dotted(path: Path) -> str:
    """`("endpoints", "a", "url")` as `endpoints.a.url`, quoted where a key needs it."""
    return ".".join(key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"' for key in path)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was most likely meant to be."""
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def shown(path: Path, value: Any) -> str:
    """`value` as it may be printed: secrets, and passwords inside URLs, never are."""
    if SECRETS.intersection(path) or "headers" in path:
        return f"a hidden {type(value).__name__}"
    text = re.sub(r"//[^/@\s]*@", "//***@", repr(value))
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "..."


def field_types(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Field name to full type, with the constraints that Annotated carries."""
    hints = get_type_hints(struct, include_extras=True)
    return {info.name: hints[info.name] for info in msgspec.structs.fields(struct)}


def allowed(kind: Any) -> str:
    """What a field of type `kind` allows, in words."""
    return _words(msgspec.inspect.type_info(kind))


def _struct(value: Any, struct: Any, path: Path) -> Any:
    if not isinstance(value, dict):
        raise InvalidValueError(path, f"is {shown(path, value)}; it must be a table")
    types = field_types(struct)
    for key in value:
        if key not in types:
            meant = nearest(key, types)
            hint = f"did you mean {meant}?" if meant else f"known here: {', '.join(types)}"
            raise InvalidValueError((*path, key), f"is not a known key; {hint}")
    for info in msgspec.structs.fields(struct):
        if info.required and info.name not in value:
            words = "a table" if _is_table(types[info.name]) else allowed(types[info.name])
            raise InvalidValueError((*path, info.name), f"is missing; it must be {words}")
    return struct(**{key: _value(item, types[key], (*path, key)) for key, item in value.items()})


def _value(value: Any, kind: Any, path: Path) -> Any:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct(value, kind, path)
    if get_origin(kind) is dict:
        if not isinstance(value, dict):
            raise InvalidValueError(path, f"is {shown(path, value)}; it must be a table")
        key_kind, value_kind = get_args(kind)
        for key in value:
            try:
                msgspec.convert(key, key_kind, strict=True)
            except msgspec.ValidationError:
                words = allowed(key_kind)
                raise InvalidValueError((*path, key), f"is no valid key; it must be {words}") from None
        return {key: _value(item, value_kind, (*path, key)) for key, item in value.items()}
    if is_list_of_tables(kind) and isinstance(value, list):
        (item_kind,) = get_args(kind)
        return [_value(item, item_kind, (*path, str(number))) for number, item in enumerate(value, 1)]
    return _leaf(value, kind, path)


def is_list_of_tables(kind: Any) -> bool:
    """Whether a field holds `[[...]]` tables."""
    return get_origin(kind) is list and _is_table(get_args(kind)[0])


def _leaf(value: Any, kind: Any, path: Path) -> Any:
    # TOML can say nan and inf; no setting of ours means either.
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidValueError(path, f"is {value}; it must be {allowed(kind)}")
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError:
        raise InvalidValueError(path, f"is {shown(path, value)}; it must be {allowed(kind)}") from None


def _is_table(kind: Any) -> bool:
    return get_origin(kind) is dict or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))


def _words(kind: msgspec.inspect.Type) -> str:
    match kind:
        case msgspec.inspect.Metadata(type=inner):
            return _words(inner)
        case msgspec.inspect.UnionType(types=types):
            return " or ".join(_words(t) for t in types if not isinstance(t, msgspec.inspect.NoneType))
        case msgspec.inspect.LiteralType(values=values):
            return f"one of {', '.join(str(value) for value in values)}"
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            noun = "a whole number" if isinstance(kind, msgspec.inspect.IntType) else "a number"
            return noun + _bounds(kind)
        case msgspec.inspect.StrType(pattern=pattern):
            return "a string" if pattern is None else _PATTERNS.get(pattern, f"a string like {pattern}")
        case msgspec.inspect.ListType(item_type=item, min_length=least):
            some = "a list" if least is None else f"a list of at least {least}"
            return f"{some}, each {_words(item)}"
        case _:
            return type(kind).__name__.removesuffix("Type").lower()


def _bounds(kind: msgspec.inspect.IntType | msgspec.inspect.FloatType) -> str:
    low = f"at least {kind.ge:g}" if kind.ge is not None else ""
    low = f"over {kind.gt:g}" if kind.gt is not None else low
    high = f"at most {kind.le:g}" if kind.le is not None else ""
    high = f"under {kind.lt:g}" if kind.lt is not None else high
    bounds = " and ".join(bound for bound in (low, high) if bound)
    return f", {bounds}" if bounds else ""
