"""Columns as one block of ClickHouse's Native format, encoded by numpy.

clickhouse-connect encodes Python values one by one: some 30,000 rows of `pairs` a second of one core.
Whoever has columns (a backfill, a benchmark) needs none of that: numbers go as they lie in memory, and
words as a dictionary and codes. The layout is that of `src/Formats/NativeWriter.cpp` and
`src/DataTypes/Serializations/SerializationLowCardinality.cpp` of the ClickHouse sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ingest.errors import FatalError

_FIXED = {
    **{f"UInt{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"Int{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    "Float32": "<f4",
    "Float64": "<f8",
    "Bool": "u1",
    "DateTime64": "<i8",
}
"""How a type lies in memory. A DateTime64 is its ticks since 1970; a Bool 0 or 1."""

_LOW_CARDINALITY_VERSION = 1
_HAS_KEYS, _NEW_DICTIONARY = 1 << 9, 1 << 10
_SHORT = [bytes((length,)) for length in range(128)]
_CODES = ("u1", "<u2", "<u4", "<u8")

Numbers = npt.NDArray[Any]


class Words(msgspec.Struct, frozen=True):
    """Text with few distinct values: row i is `words[codes[i]]`, or NULL where the code is negative."""

    words: Sequence[str]
    codes: Numbers


class Lists(msgspec.Struct, frozen=True):
    """Arrays, or maps with two items: row i is `items[ends[i - 1]:ends[i]]`."""

    ends: Numbers
    items: tuple[Any, ...]


Column = Any
"""A numpy array (masked where NULL), `Words`, `Lists`, or for String and UUID a sequence of bytes (for a
UUID 16 bytes in order)."""


def native_block(columns: Mapping[str, Column], types: Mapping[str, str], rows: int) -> bytes:
    """The columns as one block. Raises FatalError for a column whose length, kind or type does not fit."""
    out = [_varint(len(columns)), _varint(rows)]
    for name, column in columns.items():
        kind = types[name]
        length = column_length(column)
        if length != rows:
            raise FatalError(f"column {name} has {length} rows, the block {rows}")
        out += [_text(name.encode()), _text(kind.encode()), *_prefix(kind), *_body(name, kind, column)]
    return b"".join(out)


def column_length(column: Column) -> int:
    """The rows of a column."""
    if isinstance(column, Words):
        return len(column.codes)
    return len(column.ends if isinstance(column, Lists) else column)


def _prefix(kind: str) -> list[bytes]:
    """What stands before all data of a column: one version for each LowCardinality in it, in order."""
    return [_u64(_LOW_CARDINALITY_VERSION)] * kind.count("LowCardinality(")


def _body(name: str, kind: str, column: Column) -> list[bytes]:
    outer, inner = _parts(kind)
    if outer == "LowCardinality" and isinstance(column, Words):
        return _words(column, is_nullable=inner.startswith("Nullable("))
    if outer in ("Array", "Map") and isinstance(column, Lists):
        kinds = [inner] if outer == "Array" else inner.split(", ")
        out = [np.asarray(column.ends, dtype="<u8").tobytes()]
        for item_kind, items in zip(kinds, column.items, strict=True):
            out += _body(name, item_kind, items)
        return out
    if outer == "Nullable" and isinstance(column, np.ndarray):
        mask = np.ma.getmaskarray(column).astype("u1").tobytes()
        return [mask, *_body(name, inner, np.ma.filled(column, 0))]
    if outer == "Nullable" and not isinstance(column, (Words, Lists)):
        plain = [b"" if value is None else value for value in column]
        return [bytes(value is None for value in column), *_body(name, inner, plain)]
    if outer in _FIXED and isinstance(column, np.ndarray) and not np.ma.isMaskedArray(column):
        return [np.asarray(column, dtype=_FIXED[outer]).tobytes()]
    if outer == "String" and not isinstance(column, (Words, Lists, np.ndarray)):
        return [_strings(column)]
    if outer == "UUID" and not isinstance(column, (Words, Lists, np.ndarray)):
        # Two numbers of 64 bits, each with its low byte first.
        return [np.frombuffer(b"".join(column), dtype=">u8").astype("<u8").tobytes()]
    raise FatalError(f"column {name} is of type {kind}: a {type(column).__name__} cannot be stored in it")


def _words(column: Words, *, is_nullable: bool) -> list[bytes]:
    if not len(column.codes):
        return []
    codes = np.asarray(column.codes, dtype=np.int64)
    if codes.min() < (-1 if is_nullable else 0) or codes.max() >= len(column.words):
        raise FatalError(f"a code of {codes.min()} to {codes.max()} is outside {len(column.words)} words")
    words = [word.encode() for word in column.words]
    if is_nullable:
        # The first entry stands for NULL.
        words, codes = [b"", *words], codes + 1
    size = next(size for size in range(4) if len(words) <= 1 << (8 << size))
    return [
        _u64(size | _HAS_KEYS | _NEW_DICTIONARY),
        _u64(len(words)),
        b"".join(map(_text, words)),
        _u64(len(codes)),
        codes.astype(_CODES[size]).tobytes(),
    ]


def _strings(column: Sequence[bytes]) -> bytes:
    lengths = set(map(len, column))
    if len(lengths) == 1:
        # Hashes and ids: the same length before each.
        before = _varint(lengths.pop())
        return before + before.join(column)
    if max(lengths, default=0) < len(_SHORT):
        before_each = map(_SHORT.__getitem__, map(len, column))
        return b"".join(chain.from_iterable(zip(before_each, column, strict=True)))
    return b"".join(part for value in column for part in (_varint(len(value)), value))


def _parts(kind: str) -> tuple[str, str]:
    """`Array(String)` to (`Array`, `String`)."""
    found = re.fullmatch(r"(\w+)(?:\((.*)\))?", kind)
    return (found[1], found[2] or "") if found else (kind, "")


def _text(value: bytes) -> bytes:
    return _varint(len(value)) + value


def _u64(value: int) -> bytes:
    return value.to_bytes(8, "little")


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
