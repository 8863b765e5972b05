"""Columns that are not lists of Python values, and cells of arrays in the same form.

The cell of an array is a column of its items: laid end to end, the cells of many rows are one column again,
and nobody has looked at an item.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from compare.store.native_bytes import Numbers
from ingest.packed_texts import PackedTexts


class Words(msgspec.Struct, frozen=True):
    """Text with few distinct values: row i is `words[codes[i]]`, or NULL where the code is negative."""

    words: Sequence[str]
    codes: Numbers


class Lists(msgspec.Struct, frozen=True):
    """Arrays (of tuples: with an item column for each element), or maps with two item columns: row i is
    `items[ends[i - 1]:ends[i]]`.
    """

    ends: Numbers
    items: tuple[Any, ...]


Column = Any
"""A list or tuple of Python values (None for NULL); or a numpy array (masked where NULL, or NaN in a nullable
column of floats; for a UUID, and for a String whose values are equally long, bytes of the shape (rows,
length)), `PackedTexts`, `Words`, or `Lists`."""

CELLS = (np.ndarray, PackedTexts, Words, Lists)
"""What a cell of an array may be instead of a list. Its kind is that of the whole column."""


def column_length(column: Column) -> int:
    """The rows of a column."""
    if isinstance(column, Words):
        return len(column.codes)
    return len(column.ends if isinstance(column, Lists) else column)


def end_to_end(cells: Sequence[Column]) -> Lists:
    """The rows of an Array as one column: rows that are `CELLS`, or lists as well."""
    ends = np.cumsum([column_length(cell) for cell in cells], dtype="<u8")
    kinds = set(map(type, cells))
    if not kinds.isdisjoint((list, tuple)):
        return Lists(ends, (list(chain.from_iterable(map(plain, cells))),))
    return Lists(ends, (_joined(cells),))


def _joined(cells: Sequence[Any]) -> Column:
    first = cells[0]
    if isinstance(first, PackedTexts):
        return PackedTexts(sum(map(len, cells)), b"".join([cell.data for cell in cells]))
    if isinstance(first, Words):
        return _joined_words(cells)
    if isinstance(first, Lists):
        sizes = np.concatenate([np.diff(cell.ends, prepend=0) for cell in cells])
        columns = zip(*[cell.items for cell in cells], strict=True)
        return Lists(np.cumsum(sizes, dtype="<u8"), tuple(map(_joined, columns)))
    values = np.concatenate([np.ma.getdata(cell) for cell in cells])
    if any(np.ma.isMaskedArray(cell) for cell in cells):
        return np.ma.masked_array(values, np.concatenate([np.ma.getmaskarray(cell) for cell in cells]))
    return values


def _joined_words(cells: Sequence[Words]) -> Words:
    known: dict[str, int] = {}
    codes = []
    for cell in cells:
        # The last place is that of a negative code.
        places = [known.setdefault(word, len(known)) for word in cell.words]
        codes.append(np.array([*places, -1])[cell.codes.astype(np.int64)])
    return Words(list(known), np.concatenate(codes))


def plain(column: Column) -> Any:
    """The same as a list of Python values; what is none of `CELLS` as it is."""
    if isinstance(column, PackedTexts):
        return column.listed()
    if isinstance(column, Words):
        words = [*column.words, None]
        return [words[code if code >= 0 else -1] for code in column.codes.tolist()]
    if isinstance(column, Lists):
        (items,) = column.items
        listed, ends = plain(items), column.ends.tolist()
        return [listed[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    if isinstance(column, np.ndarray):
        values = column.tolist()
        return [None if value != value else value for value in values] if column.dtype.kind == "f" else values
    return column


def as_bytes(value: object) -> Any:
    """What stands for the arrays of a cell where columns are encoded to be hashed."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, np.ma.filled(value, 0).tobytes(), np.ma.getmaskarray(value).tobytes()
    raise TypeError(f"a {type(value).__name__} is no value of a row")
