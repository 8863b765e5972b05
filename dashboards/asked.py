"""Asking the store: one query, one frame."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pandas as pd

from compare.store.asked import Asked

__all__ = ["Asked", "between", "frame", "hours_between", "records", "seconds"]


BY_INDEX = {"use_skip_indexes_if_final_exact_mode": 0}
"""Settings of a query that an index of words, ids or hashes serves: FINAL would read, beside the granules
that it names, all those with keys among theirs, which are half of the day. The key of a row decides its ids,
and so all versions of a row are in the granules named; of an answer that was stored twice, as after a crash,
the words of both are found.
"""


def frame(
    asked: Asked,
    sql: str,
    parameters: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """The rows of one query as a frame whose columns are named as in the query."""
    result = asked.query(sql, parameters or {}, settings)
    return pd.DataFrame(list(result.rows), columns=list(result.column_names))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One dictionary a row, as `frame.to_dict("records")` makes them in four times the time."""
    names = [str(name) for name in frame.columns]
    columns = [frame[name].tolist() for name in frame.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def between(column: str, start: datetime | None, end: datetime | None) -> tuple[str, dict[str, Any]]:
    """The condition ` AND ...` of a column of times from `start` on and before `end`, and its values."""
    return _between(column, start, end, "{start:DateTime('UTC')}")


def hours_between(column: str, start: datetime | None, end: datetime | None) -> tuple[str, dict[str, Any]]:
    """The same of a column of whole hours: those that have a part in the range."""
    return _between(column, start, end, "toStartOfHour({start:DateTime('UTC')})")


def seconds(at: datetime) -> str:
    """A time as ClickHouse reads it for DateTime('UTC'): ten digits, within what the type holds."""
    return f"{min(max(int(at.timestamp()), 0), 2**32 - 1):010d}"


def _between(
    column: str, start: datetime | None, end: datetime | None, first: str
) -> tuple[str, dict[str, Any]]:
    sql, bounds = "", dict[str, Any]()
    if start is not None:
        sql += f" AND {column} >= {first}"
        bounds["start"] = seconds(start)
    if end is not None:
        sql += f" AND {column} < {{end:DateTime('UTC')}}"
        bounds["end"] = seconds(end)
    return sql, bounds
