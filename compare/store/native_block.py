"""Columns as one block of ClickHouse's Native format: all that this program inserts goes through here.

Numbers of numpy go as they lie in memory, and words as a dictionary and codes; columns of Python values
are turned into those first (`native_values`). The layout is that of `src/Formats/NativeWriter.cpp` and
`src/DataTypes/Serializations/SerializationLowCardinality.cpp` of the ClickHouse sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compare.store import native_bytes
from compare.store.native_columns import CELLS, Column, Lists, Words, column_length, end_to_end
from compare.store.native_types import FIXED, item_types, type_parts
from compare.store.native_values import Listed, flags, listed, nullable_numbers, numbers, plain_bytes, uuids
from ingest.errors import FatalError
from ingest.packed_texts import PackedTexts, strings, varint


class ColumnValueError(ValueError):
    """A Python value does not fit the type of its column."""


def native_block(columns: Mapping[str, Column], types: Mapping[str, str], rows: int) -> bytes:
    """The columns as one block; raises as `native_parts`."""
    return b"".join(native_parts(columns, types, rows))


def native_parts(columns: Mapping[str, Column], types: Mapping[str, str], rows: int) -> list[bytes]:
    """The pieces of one block, in order.

    Raises FatalError for a column whose length or kind does not fit, ColumnValueError for a Python
    value that does not.
    """
    out = [varint(len(columns)), varint(rows)]
    for name, column in columns.items():
        kind = types[name]
        length = column_length(column)
        if length != rows:
            raise FatalError(f"column {name} has {length} rows, the block {rows}")
        out += [native_bytes.text(name.encode()), native_bytes.text(kind.encode()), *_prefix(kind)]
        try:
            out += _body(name, kind, column)
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise ColumnValueError(f"column {name} of type {kind}: {error}") from error
    return out


def _prefix(kind: str) -> list[bytes]:
    """What stands before all data of a column: one version for each LowCardinality in it, in order."""
    return [native_bytes.u64(native_bytes.LOW_CARDINALITY_VERSION)] * kind.count("LowCardinality(")


def _body(name: str, kind: str, column: Column) -> list[bytes]:
    outer, inner = type_parts(kind)
    if isinstance(column, (list, tuple)):
        return _python_values(name, kind, column)
    if isinstance(column, Words):
        codes = np.asarray(column.codes)
        if outer == "LowCardinality":
            return native_bytes.dictionary(column.words, codes, is_nullable=inner.startswith("Nullable("))
        if kind == "Nullable(String)":
            return [(codes < 0).tobytes(), native_bytes.word_strings(column.words, codes)]
        if kind == "String" and not (len(codes) and codes.min() < 0):
            return [native_bytes.word_strings(column.words, codes)]
    if isinstance(column, PackedTexts) and kind == "String":
        return [column.data]
    if isinstance(column, Lists) and outer in ("Array", "Map"):
        return _lists(name, kind, column)
    if isinstance(column, np.ndarray):
        if outer == "Nullable" and type_parts(inner)[0] in FIXED:
            values, mask = np.asarray(np.ma.filled(column, 0)), np.ma.getmaskarray(column)
            if values.dtype.kind == "f":
                mask = mask | np.isnan(values)
            return [mask.tobytes(), *_body(name, inner, values)]
        if outer in FIXED and not np.ma.isMaskedArray(column):
            return [np.asarray(column, dtype=FIXED[outer]).tobytes()]
        if outer == "String" and column.dtype == "u1" and column.ndim == 2:
            return [native_bytes.even_strings(column)]
        if outer == "UUID" and column.dtype == "u1" and column.shape[1:] == (16,):
            # Two numbers of 64 bits, each with its low byte first.
            return [np.ascontiguousarray(column).view(">u8").astype("<u8").tobytes()]
    raise FatalError(f"column {name} is of type {kind}: a {type(column).__name__} cannot be stored in it")


def _lists(name: str, kind: str, column: Lists) -> list[bytes]:
    out = [np.asarray(column.ends, dtype="<u8").tobytes()]
    for item_kind, items in zip(item_types(kind), column.items, strict=True):
        out += _body(name, item_kind, items)
    return out


def _python_values(name: str, kind: str, values: Sequence[Any]) -> list[bytes]:
    outer, inner = type_parts(kind)
    if outer == "Nullable" and (found := nullable_numbers(inner, values)) is not None:
        mask, filled = found
        return [mask, *_body(name, inner, filled)]
    if outer == "Nullable":
        rest = [value for value in values if value is not None]
        (filler,) = rest[:1] or (_empty(inner),)
        rest = [filler if value is None else value for value in values]
        return [bytes([value is None for value in values]), *_body(name, inner, rest)]
    if outer == "LowCardinality":
        if not inner.startswith("Nullable(") and None in values:
            raise TypeError("None is no text")
        return _body(name, kind, _words(values))
    if outer == "Array" and any(isinstance(value, CELLS) for value in values):
        return _lists(name, kind, end_to_end(values))
    if outer in ("Array", "Map"):
        made: Listed = listed(kind, values)
        return _lists(name, kind, Lists(made.ends, made.items))
    if outer == "String":
        return [strings(plain_bytes(values))]
    if outer == "UUID":
        return _body(name, kind, uuids(values))
    if outer == "Bool":
        return [flags(values)]
    return _body(name, kind, numbers(kind, values))


def _words(values: Sequence[str | None]) -> Words:
    words = [word for word in dict.fromkeys(values) if word is not None]
    places: dict[str | None, int] = {word: place for place, word in enumerate(words)} | {None: -1}
    return Words(words, np.fromiter(map(places.__getitem__, values), dtype=np.int64, count=len(values)))


def _empty(kind: str) -> Any:
    """What stands where all values are NULL."""
    return {"String": b"", "UUID": bytes(16)}[type_parts(kind)[0]]
