"""The memory that rows take, about."""

from __future__ import annotations

from datetime import UTC, datetime

from compare.store.answer import bytes_of, bytes_of_rows


def test_rows_take_together_what_each_of_them_takes() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    rows = [
        ("a", 1, at, None, ["x", "yz"], {"k": "v"}, "text", b"12"),
        ("", 2.5, None, None, [], {}, 7, None),
        (None, None, at, None, ("w",), {"key": [1, 2]}, "ab", b""),
    ]
    assert bytes_of([["x", "yz"]]) == 32 + 2 * 32 + 3
    assert bytes_of_rows(rows) == sum(bytes_of(row) for row in rows)
    assert bytes_of_rows([]) == 0
