"""Bytes to JSON, tolerant where the meaning is clear and exact about the place where it is not."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from ingest.errors import DeadLetterError

MAX_DEPTH = 128
"""Nesting of objects and arrays; deeper input is refused before anything can overflow a stack."""

_BOM = b"\xef\xbb\xbf"
_EXCERPT_BYTES = 24


class Json(msgspec.Struct, frozen=True):
    """A decoded value and what had to be mended.

    Lone surrogates are already U+FFFD. `has_non_finite`: floats in `value` may be NaN or infinite
    (Python writes such literals, and numbers such as 1e999 become infinite); use `without_non_finite`.
    """

    value: Any
    has_lone_surrogates: bool = False
    has_non_finite: bool = False


def read_json(data: bytes, place: str = "the value") -> Json:
    """Decode UTF-8 JSON, with or without a byte order mark.

    Raises DeadLetterError `invalid_utf8`, `invalid_json` (with the byte position and what stands
    there) or `too_deep`. `place` names the input in the message.
    """
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return _read_slowly(data, place)
    refuse_deep(value, data, place)
    return Json(value)


def refuse_deep(value: Any, data: bytes, place: str = "the value") -> None:
    """Raise DeadLetterError `too_deep` if `value`, decoded from `data`, nests deeper than 128."""
    # As many brackets as it takes are rare; only then is the tree walked.
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _is_deep(value):
        raise _too_deep(place)


def without_non_finite(value: Any, *, as_text: bool) -> Any:
    """The same tree with each NaN or infinity as its name (`"NaN"`, `"-Infinity"`), or as None."""
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value) if as_text else None
    if isinstance(value, dict):
        return {key: without_non_finite(item, as_text=as_text) for key, item in value.items()}
    if isinstance(value, list):
        return [without_non_finite(item, as_text=as_text) for item in value]
    return value


def excerpt(data: bytes, position: int) -> str:
    """The bytes around `position`, printable on one line."""
    return ascii(data[max(0, position - _EXCERPT_BYTES) : position + _EXCERPT_BYTES])[1:]


def _read_slowly(data: bytes, place: str) -> Json:
    """What msgspec refuses: a BOM, lone surrogates, NaN; or the exact place of an error."""
    start = len(_BOM) if data.startswith(_BOM) else 0
    text = _text(data, start, place)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        position = start + len(text[: error.pos].encode("utf-8", "surrogatepass"))
        # Some of Python's messages end in "at", before the place that we give in bytes.
        what = error.msg.removesuffix(" at")
        raise DeadLetterError(
            "invalid_json",
            f"{place} is no JSON: {what} at byte {position} of {len(data)}: {excerpt(data, position)}",
        ) from error
    except RecursionError as error:
        raise _too_deep(place) from error
    except ValueError as error:
        # Python refuses integers of more than 4,300 digits.
        raise DeadLetterError("invalid_json", f"{place} holds a number that is too long: {error}") from error
    if _is_deep(value):
        raise _too_deep(place)
    mended = _without_surrogates(value)
    return Json(
        mended,
        has_lone_surrogates=mended != value,
        has_non_finite=_has_non_finite(mended),
    )


def _text(data: bytes, start: int, place: str) -> str:
    try:
        return data[start:].decode("utf-8")
    except UnicodeDecodeError as error:
        position = start + error.start
    try:
        # Some writers put the halves of a surrogate pair, or one alone, straight into UTF-8.
        halves = data[start:].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise DeadLetterError(
            "invalid_utf8",
            f"{place} is not UTF-8 at byte {position} of {len(data)}: {excerpt(data, position)}",
        ) from None
    return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _is_deep(value: Any) -> bool:
    """Whether the tree nests deeper than MAX_DEPTH; level by level, without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for item in level:
            children = item.values() if isinstance(item, dict) else item
            if isinstance(item, dict | list):
                inner += [child for child in children if isinstance(child, dict | list)]
        if not inner:
            return False
        level = inner
    return True


def _without_surrogates(value: Any) -> Any:
    """The same tree; pairs of surrogates joined, lone ones replaced by U+FFFD, in keys too."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return value
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return value


def _has_non_finite(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(_has_non_finite(item) for item in value.values())
    return isinstance(value, list) and any(_has_non_finite(item) for item in value)


def _too_deep(place: str) -> DeadLetterError:
    return DeadLetterError("too_deep", f"{place} nests deeper than {MAX_DEPTH} levels")
