"""Python values, a column at a time, as numpy arrays and bytes of ClickHouse's types.

Nothing is rounded, cut or guessed: a value that its type cannot hold raises TypeError, ValueError or
OverflowError. The one exception: NaN in a nullable float column is NULL.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import UTC, date, datetime
from itertools import accumulate, chain
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from compare.store.native_bytes import Numbers
from compare.store.native_types import FIXED, item_types, type_parts

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.date().toordinal()
_MACHINE = {"u1": "B", "<u2": "H", "<u4": "I", "<u8": "Q", "i1": "b", "<i1": "b", "<u1": "B"} | {
    "<i2": "h",
    "<i4": "i",
    "<i8": "q",
}
"""Codes of `array`, which takes whole numbers in range and nothing else."""
_NAN = float("nan")


class Listed(NamedTuple):
    """Lists laid end to end: row i is `items[ends[i - 1]:ends[i]]`; of tuples a list an element."""

    ends: Numbers
    items: tuple[list[Any], ...]


def numbers(kind: str, values: Sequence[Any]) -> Numbers:
    """Numbers or times of a type of `FIXED`; a time must be aware."""
    outer, inner = type_parts(kind)
    if outer == "DateTime64":
        return np.array(_ticks(values, int(inner.split(",")[0])), dtype="<i8")
    if outer == "DateTime":
        return np.frombuffer(array("I", _ticks(values, 0)), dtype="<u4")
    if outer == "Date":
        return np.frombuffer(array("H", list(map(_day, values))), dtype="<u2")
    if outer in ("Float32", "Float64"):
        return _floats(outer, values)
    if outer not in FIXED:
        raise TypeError("values of Python cannot be stored in it")
    return np.frombuffer(array(_MACHINE[FIXED[outer]], values), dtype=FIXED[outer])


def nullable_numbers(kind: str, values: Sequence[Any]) -> tuple[bytes, Numbers] | None:
    """A byte a row, 1 where it is NULL, and the numbers or times; None if the type is none of those."""
    outer, _ = type_parts(kind)
    if outer not in FIXED:
        return None
    missing = values.count(None)
    if missing == len(values):
        return b"\x01" * missing, np.zeros(missing, dtype=FIXED[outer])
    if outer in ("Float32", "Float64"):
        found = _floats(outer, [_NAN if value is None else value for value in values] if missing else values)
        return np.isnan(found).tobytes(), found
    filler = next(value for value in values if value is not None)
    filled = [filler if value is None else value for value in values] if missing else values
    found = np.frombuffer(flags(filled), dtype="u1") if outer == "Bool" else numbers(kind, filled)
    return bytes([value is None for value in values]), found


def flags(values: Sequence[Any]) -> bytes:
    """A Bool a byte."""
    found = bytes(values)
    if found.strip(b"\x00\x01"):
        raise ValueError(f"{max(found)} is neither true nor false")
    return found


def plain_bytes(values: Sequence[Any]) -> list[bytes]:
    """Texts in UTF-8; bytes as they are."""
    return [value if isinstance(value, bytes) else value.encode() for value in values]


def uuids(values: Sequence[Any]) -> Numbers:
    """UUIDs (or their text, or their 16 bytes), shape (n, 16)."""
    found = [value if isinstance(value, bytes) else _uuid_bytes(value) for value in values]
    if set(map(len, found)) - {16}:
        raise ValueError("a UUID has 16 bytes")
    return np.frombuffer(b"".join(found), dtype="u1").reshape(-1, 16)


def listed(kind: str, values: Sequence[Any]) -> Listed:
    """The rows of an Array or a Map, end to end."""
    ends = np.fromiter(accumulate(map(len, values)), dtype="<u8", count=len(values))
    if type_parts(kind)[0] == "Map":
        keys = list(chain.from_iterable(values))
        return Listed(ends, (keys, list(chain.from_iterable(value.values() for value in values))))
    if not {str, bytes}.isdisjoint(map(type, values)):
        raise TypeError("a text is no list")
    items = list(chain.from_iterable(values))
    if not type_parts(kind)[1].startswith("Tuple("):
        return Listed(ends, (items,))
    width = len(item_types(kind))
    if set(map(len, items)) - {width}:
        raise ValueError(f"a tuple has not {width} elements")
    return Listed(ends, tuple([item[at] for item in items] for at in range(width)))


def _floats(outer: str, values: Sequence[Any]) -> Numbers:
    exact = np.frombuffer(array("d", values), dtype="<f8")
    if outer == "Float64":
        return exact
    with np.errstate(over="ignore"):
        found = exact.astype("<f4")
    if (too_large := np.isinf(found) & ~np.isinf(exact)).any():
        raise OverflowError(f"{exact[too_large][0]} is beyond Float32")
    return found


def _ticks(values: Sequence[datetime], digits: int) -> list[int]:
    scale, rest = 10**digits, 10 ** (6 - digits)
    since = [value - _EPOCH for value in values]
    return [(gap.days * 86_400 + gap.seconds) * scale + gap.microseconds // rest for gap in since]


def _day(value: date) -> int:
    return value.toordinal() - _EPOCH_DAY


def _uuid_bytes(value: Any) -> bytes:
    return value.bytes if isinstance(value, UUID) else bytes.fromhex(value.replace("-", ""))
