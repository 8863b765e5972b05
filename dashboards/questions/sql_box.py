"""What the SQL page asks: a recipe or a person's own statement, within limits; and the rows as a file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from compare.recipes import Recipe, placeholders, shipped_recipes
from compare.store.answer import Result
from compare.store.reader_rules import why_not_read_only
from compare.store.sql_text import format_at_end, lexemes
from dashboards.shell.hidden_text import TEXT_COLUMNS, TEXT_VIEWS, TextHidden
from dashboards.shell.reader import Reader

SECONDS = 30
"""The most time that a statement gets in the store; a server's role may give less."""
PAGE_ROWS = 10_000
PAGE_BYTES = 16 * 1024 * 1024
FILE_ROWS = 100_000
FILE_BYTES = 64 * 1024 * 1024
BLOCK_ROWS = 50
"""Rows that the store makes at once, so that long texts do not come by the gigabyte."""

_QUOTING = TEXT_COLUMNS | {"detail"}
"""Columns that quote texts. A statement may give them any name, so their mere mention counts."""
_POSITION = re.compile(r"\(line (\d+), col (\d+)\)")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class Statement(msgspec.Struct, frozen=True):
    """What is asked: the text, and the values that the server binds."""

    sql: str
    parameters: dict[str, Any] = {}


def recipes(*, shows_text: bool) -> dict[str, Recipe]:
    """The shipped recipes by name; without `shows_text` those that touch no text of a prompt or an answer."""
    shipped = shipped_recipes()
    if shows_text:
        return shipped
    return {name: one for name, one in shipped.items() if not touches_text(one.statement)}


def touches_text(sql: str) -> bool:
    """Whether the statement names a view with texts, or a column that quotes them."""
    words = {part.strip('`"') for kind, part in lexemes(sql) if kind in ("word", "quoted")}
    return not words.isdisjoint(TEXT_VIEWS | _QUOTING)


def bound(sql: str, series: Mapping[str, Any]) -> Statement:
    """A person's statement, with the experiment and candidate of the side bar where it names them."""
    named = {name for name, _ in placeholders(sql)}
    return Statement(sql, {name: value for name, value in series.items() if name in named})


def why_refused(sql: str) -> str | None:
    """Why the page does not send the statement, None if it does. The store has its own rules besides."""
    if reason := why_not_read_only(sql):
        return reason.replace("a read-only token", "this page")
    if name := format_at_end(sql):
        return f"leave FORMAT {name} out: rows come as a table, a chart and a file"
    return None


def run(reader: Reader, statement: Statement, *, is_wanted: bool = False) -> Result:
    """The first PAGE_ROWS rows within PAGE_BYTES; `is_wanted` asks also what was cancelled before.

    Raises what the store raises, Cancelled, TextHidden.
    """
    return reader.some(
        statement.sql,
        statement.parameters,
        _limits(PAGE_ROWS),
        rows=PAGE_ROWS,
        size=PAGE_BYTES,
        is_wanted=is_wanted,
    )


def file_of(reader: Reader, statement: Statement) -> bytes:
    """The first FILE_ROWS rows within FILE_BYTES as CSV, asked anew. Called from any thread.

    Raises what the store raises, and TextHidden.
    """
    if not reader.shows_text and touches_text(statement.sql):
        raise TextHidden
    answer = reader.some(
        statement.sql,
        statement.parameters,
        _limits(FILE_ROWS),
        rows=FILE_ROWS,
        size=FILE_BYTES,
        is_download=True,
    )
    return as_csv(answer)


def as_csv(answer: Result) -> bytes:
    """The rows as CSV in UTF-8 with a head. Lists are JSON, times ISO 8601 in UTC, a missing value is empty.

    Text that a spreadsheet would run as a formula gets an apostrophe in front (OWASP, "CSV Injection").
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([guarded(name) for name in answer.column_names])
    for row in answer:
        writer.writerow([_cell(value) for value in row])
    return text.getvalue().encode("utf-8", "backslashreplace")


def guarded(text: str) -> str:
    """The text, with an apostrophe in front if its first character would make it a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def plain(value: Any) -> str:
    """A value of a list, map, or of a type that a table does not know, as JSON or text."""
    if isinstance(value, list | tuple | dict):
        return msgspec.json.encode(_jsonable(value)).decode()
    return value.hex() if isinstance(value, bytes) else str(value)


def position(message: str) -> tuple[int, int] | None:
    """Line and column, counted from 1, that an error of the store names."""
    found = _POSITION.search(message)
    return (int(found[1]), int(found[2])) if found else None


def pointed(sql: str, line: int, column: int) -> str:
    """The lines of the statement up to that line, and under it a caret at the column."""
    lines = sql.splitlines()[:line]
    return "\n".join([*lines, " " * (column - 1) + "^"])


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return guarded(plain(value))


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _jsonable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else plain(value)


def _limits(rows: int) -> dict[str, Any]:
    # One more than is shown, so that it can be told that there are more.
    return {"limit": rows + 1, "max_execution_time": SECONDS, "max_block_size": BLOCK_ROWS}


def unlike_names(names: Iterable[str]) -> list[str]:
    """The names without what comes twice: `a`, `a (2)`."""
    seen: dict[str, int] = {}
    made = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        made.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return made
