"""Asking the store: one query, one frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pandas as pd

from compare.store.client import Result


class Asked(Protocol):
    """What answers queries: a `Store`, or a page's `Reader` of one."""

    def query(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Result:
        """The rows of one reading statement; `{name:Type}` in it is bound by the server."""


def frame(
    asked: Asked,
    sql: str,
    parameters: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """The rows of one query as a frame whose columns are named as in the query."""
    result = asked.query(sql, parameters or {}, settings)
    return pd.DataFrame(list(result.rows), columns=list(result.column_names))
