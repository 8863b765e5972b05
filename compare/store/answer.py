"""What a query gives: rows with their columns' names, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec


class Cost(msgspec.Struct, frozen=True):
    """What a query took: rows and bytes read, and the store's own seconds, as far as it had told when its
    answer began (`X-ClickHouse-Summary`). For an answer that fits a buffer, which aggregates do, that is all.
    """

    rows: int
    bytes: int
    seconds: float


class Result(msgspec.Struct, frozen=True):
    """A query's answer, iterable by row. Times are aware UTC datetimes; a String that is not UTF-8
    comes as hex. `cost` is None where the store did not tell it.
    """

    column_names: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    cost: Cost | None = None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def dicts(self) -> list[dict[str, Any]]:
        """One dictionary a row."""
        return [dict(zip(self.column_names, row, strict=True)) for row in self.rows]


def cost_of(summary: Mapping[str, Any]) -> Cost | None:
    """The cost in the summary that the store's client gives, None if it holds none."""
    try:
        rows, read, elapsed = (int(summary[name]) for name in ("read_rows", "read_bytes", "elapsed_ns"))
    except (KeyError, TypeError, ValueError):
        return None
    return Cost(rows, read, elapsed / 1e9)
