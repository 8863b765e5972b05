"""The tables and views that ship with the program, to tell an old store from a name of somebody's own."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_MISSED = re.compile(
    r"(?:Unknown|unknown) table expression identifier '([^']+)'|[Tt]able (\S+) does(?: not|n't) exist"
)
_MISSED_COLUMN = re.compile(
    r"Unknown expression(?: or function)? identifier [`']([^`']+)[`']|Identifier '([^']+)' cannot be resolved"
)
_VIEW = re.compile(r"\b\w+_v\d+\b")
_TABLE = re.compile(r"^CREATE TABLE (?:IF NOT EXISTS )?`?(\w+)", re.MULTILINE)


@cache
def shipped_names() -> frozenset[str]:
    """Names of views (the files of `sql/views`) and of tables (what the migrations create)."""
    folder = resources.files("sql")
    views = [file.name for file in folder.joinpath("views").iterdir()]
    migrations = [file for file in folder.joinpath("migrations").iterdir() if file.name.endswith(".sql")]
    tables = [name for file in migrations for name in _TABLE.findall(file.read_text(encoding="utf-8"))]
    return frozenset(
        [
            *(name.removesuffix(".sql") for name in views if name.endswith(".sql")),
            *tables,
            "schema_migrations",
        ]
    )


def misses_shipped(message: str) -> bool:
    """Whether the table or view that an error of the store misses is one of ours: the store is an old one."""
    found = _MISSED.search(message)
    named = (found[1] or found[2]).replace("`", "").split(".")[-1] if found else ""
    return named.removesuffix("_local") in shipped_names()


def misses_shipped_column(message: str) -> bool:
    """Whether a view of ours that an error's statement reads has the column that the store does not know."""
    found = _MISSED_COLUMN.search(message)
    if found is None:
        return False
    column = (found[1] or found[2]).split(".")[-1]
    folder = resources.files("sql").joinpath("views")
    return any(
        re.search(rf"\b{re.escape(column)}\b", folder.joinpath(f"{view}.sql").read_text(encoding="utf-8"))
        for view in set(_VIEW.findall(message)) & shipped_names()
    )
