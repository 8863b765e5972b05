"""JSON as inference servers really write it: NaN, infinities, lone surrogates, a BOM, broken UTF-8."""

from __future__ import annotations

import json
import re
from typing import Any

from ingest.errors import DeadLetterError

_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")

# Possessive: nothing is remembered for going back, so that memory does not grow with the strings.
_LITERALS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?Infinity|NaN', re.DOTALL)

_MAX_DIGITS = 400
"""Longer integers exceed every float, and Python refuses to read those over 4,300 digits."""


def loads(data: bytes, notes: dict[str, None]) -> Any:
    """Decode JSON, taking `NaN`, `Infinity` and `-Infinity` as floats and lone surrogates as they are.

    Bytes that are no UTF-8 become U+FFFD, with the code `invalid_utf8` in `notes` (used as an ordered
    set). Raises DeadLetterError (`invalid_json`) naming the place, never what stands there.
    """
    text = _text(data, notes)
    try:
        return _loads(text)
    except json.JSONDecodeError as error:
        raise DeadLetterError(
            "invalid_json", f"invalid JSON at character {error.pos} of {len(text)}: {_said(error)}"
        ) from None
    except RecursionError:
        raise DeadLetterError("invalid_json", "invalid JSON: nested too deeply") from None
    except ValueError as error:
        raise DeadLetterError("invalid_json", f"invalid JSON: {error}") from None


def loads_joined(data: bytes, notes: dict[str, None]) -> list[Any]:
    """Decode JSON values that stand one behind the other, with or without white space between.

    What follows the last whole value is left out. Raises DeadLetterError where not even the first is one.
    """
    text = _text(data, notes)
    decoder = json.JSONDecoder(strict=False, parse_int=_int)
    values: list[Any] = []
    place = _skip_space(text, 0)
    while place < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            break
        values.append(value)
        place = _skip_space(text, place)
    if not values:
        raise DeadLetterError("invalid_json", f"invalid JSON in {len(text)} characters")
    return values


def quote_literals(data: bytes) -> bytes:
    """Put `NaN`, `Infinity` and `-Infinity` outside of strings into quotes, for a strict decoder."""
    if b"NaN" not in data and b"Infinity" not in data:
        return data
    return _LITERALS.sub(_quoted, data)


def clean_text(text: str, notes: dict[str, None]) -> str:
    """Join surrogate halves into their character; what stays alone becomes U+FFFD.

    The halves may have come in two deltas, so call it on the whole. The code `lone_surrogate` goes to
    `notes` where one was left.
    """
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    try:
        text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        notes["lone_surrogate"] = None
    return joined


def _text(data: bytes, notes: dict[str, None]) -> str:
    if data.startswith(_UTF16_BOMS):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError:
            pass
    try:
        return data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError:
        notes["invalid_utf8"] = None
        return data.removeprefix(_BOM).decode("utf-8", "replace")


def _said(error: json.JSONDecodeError) -> str:
    """Python's words, without the end that leads over to a place."""
    return error.msg.removesuffix(" starting at").removesuffix(" at")


def _loads(text: str) -> Any:
    try:
        # strict=False: a raw line feed or tab inside a string is still readable.
        return json.loads(text, strict=False)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, strict=False, parse_int=_int)


def _int(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def _skip_space(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n\ufeff\x00":
        place += 1
    return place


def _quoted(match: re.Match[bytes]) -> bytes:
    found = match[0]
    return found if found.startswith(b'"') else b'"' + found + b'"'
