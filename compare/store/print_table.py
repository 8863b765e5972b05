"""Results as text: a table for people, CSV and JSON for programs."""

from __future__ import annotations

import csv
import io
import json
import math
import unicodedata
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Literal, assert_never
from uuid import UUID

from compare.visible import visible_line

ResultFormat = Literal["table", "csv", "json"]

# Most cells are of these types; asking first for them makes millions of rows twice as fast.
_PLAIN_TYPES = frozenset({str, int, bool, type(None)})
_CSV_TYPES = frozenset({str, int})


def format_result(columns: Sequence[str], rows: Sequence[Sequence[Any]], format: ResultFormat) -> str:
    """The result as text, without a newline at the end.

    `table` shows NULL as `NULL`, floats with 6 significant digits, and escapes control characters;
    `csv` (RFC 4180, with a header) writes NULL as nothing; `json` is a list with one object a row.
    """
    match format:
        case "table":
            return _table(columns, rows)
        case "csv":
            out = io.StringIO()
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(map(csv_row, rows))
            return out.getvalue().rstrip("\n")
        case "json":
            objects = [json_row(columns, row) for row in rows]
            return json.dumps(objects, ensure_ascii=False, indent=2, allow_nan=False)
        case other:
            assert_never(other)


def csv_row(row: Sequence[Any]) -> list[Any]:
    """The row's cells for a csv writer: NULL is nothing, what CSV has no words for is JSON."""
    return ["" if cell is None else _csv_cell(cell) for cell in row]


def json_row(columns: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    """The row as an object that JSON can hold."""
    return dict(zip(columns, map(_plain, row), strict=True))


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    cells = [[_shown(cell) for cell in row] for row in rows]
    is_number = [
        bool(rows) and all(isinstance(row[i], (int, float, type(None))) for row in rows)
        for i in range(len(columns))
    ]
    widths = [max([_width(name), *(_width(row[i]) for row in cells)]) for i, name in enumerate(columns)]

    def line(values: Sequence[str]) -> str:
        padded = [
            " " * (width - _width(value)) + value if right else value + " " * (width - _width(value))
            for value, width, right in zip(values, widths, is_number, strict=True)
        ]
        return "  ".join(padded).rstrip()

    count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(columns), rule, *map(line, cells), f"({count})"])


def _width(text: str) -> int:
    """Columns on a terminal: wide East Asian characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def _shown(cell: Any) -> str:
    if cell is None:
        return "NULL"
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return f"{cell:.6g}"
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ", timespec="milliseconds")
    # A stored answer may hold anything: control characters would drive the reader's terminal.
    return visible_line(str(_csv_cell(cell)))


def _csv_cell(cell: Any) -> Any:
    if type(cell) in _CSV_TYPES:
        return cell
    plain = _plain(cell)
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, (list, dict, bool)) else plain


def _plain(cell: Any) -> Any:
    """The cell as JSON knows it. A float that JSON cannot hold becomes its name, as in `"inf"`;
    bytes, which are text that is not UTF-8, are written as `0x` and hex.
    """
    if type(cell) in _PLAIN_TYPES:
        return cell
    if isinstance(cell, float) and not math.isfinite(cell):
        return str(cell)
    if isinstance(cell, (datetime, date)):
        return cell.isoformat()
    if isinstance(cell, UUID):
        return str(cell)
    if isinstance(cell, bytes):
        return f"0x{cell.hex()}"
    if isinstance(cell, (list, tuple)):
        return [_plain(item) for item in cell]
    if isinstance(cell, dict):
        return {str(_plain(key)): _plain(value) for key, value in cell.items()}
    return cell if isinstance(cell, (str, int, float, bool, type(None))) else str(cell)
