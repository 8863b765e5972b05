"""A table whose chosen row is in the address bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import streamlit as st

ROW_PX = 35
MISSING = "–"
"""Stands in a table where a number is not known."""


def table_height(count: int, most: int) -> int:
    """The height (px) of a table of `count` rows that shows at most so many of them at once."""
    return ROW_PX * (min(count, most) + 1) + 3


def choose_row(
    table: pd.DataFrame | pa.Table,
    keys: Sequence[str],
    asked: str,
    name: str,
    *,
    rows: int,
    columns: Mapping[str, Any] | None = None,
) -> str:
    """Show the table, `rows` of them at once; return the chosen row's key, "" where none was chosen.

    `asked` is the key in the address bar, which goes before a row that was chosen earlier; a row that is
    chosen now goes before it. `keys` are the rows' own.
    """
    start = st.session_state.get(f"{name} start", "")
    if asked != st.session_state.get(f"{name} shown", ""):
        # A link: the table begins anew with its row marked, for the one marked before is not what is shown.
        start = st.session_state[f"{name} start"] = asked
    chosen = st.dataframe(
        table,
        hide_index=True,
        placeholder=MISSING,
        height=table_height(len(table), rows),
        on_select="rerun",
        selection_mode="single-row",
        column_config=columns,
        # Other rows are another table: what was chosen is a row by its number.
        key=f"{name}-{hash(tuple(keys))}-{start}",
        selection_default={"selection": {"rows": [keys.index(start)]}} if start in keys else None,
    )
    numbers = chosen["selection"]["rows"]
    picked = keys[numbers[0]] if numbers and numbers[0] < len(keys) else ""
    is_new = picked != st.session_state.get(f"{name} picked", "")
    st.session_state[f"{name} picked"] = picked
    found = picked if picked and (is_new or not asked) else asked
    st.session_state[f"{name} shown"] = found
    return found
