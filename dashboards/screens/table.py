"""Rows as a table that Streamlit sends as it is: a frame would be made into one, in many times the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]


def table_of(rows: Sequence[Mapping[str, Any]], *, with_empty: bool = True) -> pa.Table:
    """The rows, all of the same columns and at least one; `with_empty` keeps columns without any value."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return pa.table(
        {
            name: column
            for name, column in columns.items()
            if with_empty or any(value is not None for value in column)
        }
    )
