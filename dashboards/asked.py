"""Asking the store: one query, one frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from compare.store.asked import Asked

__all__ = ["Asked", "frame"]


def frame(
    asked: Asked,
    sql: str,
    parameters: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """The rows of one query as a frame whose columns are named as in the query."""
    result = asked.query(sql, parameters or {}, settings)
    return pd.DataFrame(list(result.rows), columns=list(result.column_names))
