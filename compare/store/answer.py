"""What a query gives: rows with their columns' names, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

Row = tuple[Any, ...]

_TEXTS = {str, bytes, type(None)}
_HOLDING = (str, bytes, list, tuple, dict)


class Cost(msgspec.Struct, frozen=True):
    """What a query took: rows and bytes read, and the store's own seconds, as far as it had told when its
    answer began (`X-ClickHouse-Summary`). For an answer that fits a buffer, which aggregates do, that is all.
    """

    rows: int
    bytes: int
    seconds: float


class Result(msgspec.Struct, frozen=True):
    """A query's answer, iterable by row. Times are aware UTC datetimes; a String that is not UTF-8
    comes as hex. `cost` is None where the store did not tell it; `is_cut` tells of rows that were left out.
    """

    column_names: tuple[str, ...]
    rows: list[Row]
    cost: Cost | None = None
    is_cut: bool = False

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def dicts(self) -> list[dict[str, Any]]:
        """One dictionary a row."""
        return [dict(zip(self.column_names, row, strict=True)) for row in self.rows]


def first_rows(blocks: Iterable[Sequence[Sequence[Any]]], rows: int, size: int) -> tuple[list[Row], bool]:
    """The first `rows` rows of the blocks and of about `size` bytes, and whether there are more."""
    kept: list[Row] = []
    taken = 0
    for block in blocks:
        for row in block:
            taken += bytes_of(row)
            if len(kept) == rows or taken > size:
                return kept, True
            kept.append(tuple(row))
    return kept, False


def bytes_of(row: Sequence[Any]) -> int:
    """About the memory that it takes: 32 bytes a cell, more for text, and what lists hold."""
    size = 0
    for cell in row:
        size += 32
        if isinstance(cell, str | bytes):
            size += len(cell)
        elif isinstance(cell, list | tuple):
            size += bytes_of(cell)
        elif isinstance(cell, dict):
            size += bytes_of(tuple(cell)) + bytes_of(tuple(cell.values()))
    return size


def bytes_of_rows(rows: Sequence[Row]) -> int:
    """The same of rows of equal length together, by columns: thousands of rows take 10 ms cell by cell."""
    size = 0
    for column in zip(*rows, strict=True):
        kinds = set(map(type, column))
        if kinds <= _TEXTS:
            size += 32 * len(column) + sum(map(len, filter(None, column)))
        elif any(issubclass(kind, _HOLDING) for kind in kinds):
            size += bytes_of(column)
        else:
            size += 32 * len(column)
    return size


def cost_of(summary: Mapping[str, Any]) -> Cost | None:
    """The cost in the summary that the store's client gives, None if it holds none."""
    try:
        rows, read, elapsed = (int(summary[name]) for name in ("read_rows", "read_bytes", "elapsed_ns"))
    except (KeyError, TypeError, ValueError):
        return None
    return Cost(rows, read, elapsed / 1e9)
