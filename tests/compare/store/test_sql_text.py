from __future__ import annotations

import pytest

from compare.store.sql_text import (
    first_word,
    format_at_end,
    split_statements,
    words_of,
)
from ingest.errors import FatalError


@pytest.mark.parametrize(
    ("sql", "statements"),
    [
        ("a; b", ["a", "b"]),
        ("a 'x;y'; -- c;d\n b;", ["a 'x;y'", "-- c;d\n b"]),
        ('"a;b"; `c;d`; /* e;f */', ['"a;b"', "`c;d`"]),
        ("", []),
        (";;", []),
        ("$x$ a;b $x$; c", ["$x$ a;b $x$", "c"]),
    ],
)
def test_statements_split_only_between_statements(sql: str, statements: list[str]) -> None:
    assert split_statements(sql) == statements


def test_words_and_formats() -> None:
    assert words_of("Select `a b`, 'text' From t") == ["SELECT", "A B", ",", "'", "FROM", "T"]
    assert first_word("((select 1))") == "SELECT"
    assert format_at_end("SELECT 1\n FORMAT Native;") == "Native"
    assert format_at_end("SELECT 'FORMAT Native'") is None


def test_an_open_quote_is_an_error() -> None:
    with pytest.raises(FatalError, match="never closed at character 7"):
        words_of("SELECT 'open")
