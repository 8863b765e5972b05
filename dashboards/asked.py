"""Asking the store: one query, one frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from compare.store.asked import Asked

__all__ = ["Asked", "frame"]


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
