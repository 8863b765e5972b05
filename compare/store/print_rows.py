"""A stream of rows as text, without holding more of it than a table's first rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, assert_never

from compare.store.print_table import ResultFormat, csv_row, format_result, json_row

Blocks = Iterable[Sequence[Sequence[Any]]]


def printed(
    columns: Sequence[str], blocks: Blocks, format: ResultFormat, *, shown_rows: int
) -> Iterator[str]:
    """The text of `format_result`, piece by piece; each piece ends with a newline, or is continued.

    A table shows its first `shown_rows` rows and counts the others.
    """
    match format:
        case "table":
            yield _table(columns, blocks, shown_rows)
        case "csv":
            yield from _csv(columns, blocks)
        case "json":
            yield from _json(columns, blocks)
        case other:
            assert_never(other)


def _table(columns: Sequence[str], blocks: Blocks, shown_rows: int) -> str:
    shown: list[Sequence[Any]] = []
    more = 0
    for block in blocks:
        room = shown_rows - len(shown)
        shown.extend(block[:room])
        more += max(0, len(block) - room)
    text = format_result(columns, shown, "table")
    if more:
        text += f"\n{more} more rows are not shown: --rows N shows more, --format csv all"
    return text + "\n"


def _csv(columns: Sequence[str], blocks: Blocks) -> Iterator[str]:
    yield _csv_text([columns])
    for block in blocks:
        yield _csv_text([csv_row(row) for row in block])


def _csv_text(rows: Sequence[Sequence[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _json(columns: Sequence[str], blocks: Blocks) -> Iterator[str]:
    is_first = True
    for block in blocks:
        for row in block:
            text = json.dumps(json_row(columns, row), ensure_ascii=False, indent=2, allow_nan=False)
            yield ("[\n  " if is_first else ",\n  ") + text.replace("\n", "\n  ")
            is_first = False
    yield "[]\n" if is_first else "\n]\n"
