"""What the database holds now, as the server tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from compare.store.client import Store
from compare.store.errors import StoreQueryError

_UNKNOWN_TABLE, _UNKNOWN_DATABASE = 60, 81


class LiveTable(msgspec.Struct, frozen=True):
    """A table or view. `engine_full` is the engine with its clauses, as SQL; empty for a view."""

    engine: str
    engine_full: str
    comment: str


def live_tables(store: Store) -> dict[str, LiveTable]:
    """Tables and views of the store's database by name; none if there is no such database."""
    rows = rows_if_there(
        store,
        "SELECT name, engine, engine_full, comment FROM system.tables WHERE database = {database:String}",
        {"database": store.database},
    )
    return {name: LiveTable(engine, engine_full, comment) for name, engine, engine_full, comment in rows}


def rows_if_there(
    store: Store, sql: str, parameters: Mapping[str, Any] | None = None
) -> list[tuple[Any, ...]]:
    """The rows of a query; none if the table or the database does not exist."""
    try:
        return store.query(sql, parameters).rows
    except StoreQueryError as error:
        if is_missing_table(error) or error.code == _UNKNOWN_DATABASE:
            return []
        raise


def is_missing_table(error: BaseException | None) -> bool:
    """Whether the store refused because a table or view does not exist."""
    return isinstance(error, StoreQueryError) and error.code == _UNKNOWN_TABLE
