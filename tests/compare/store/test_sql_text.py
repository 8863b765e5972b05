from __future__ import annotations

import pytest

from compare.store.sql_text import (
    first_word,
    format_at_end,
    returns_rows,
    split_statements,
    why_not_read_only,
    words_of,
)
from ingest.errors import FatalError

READING = [
    "SELECT 1",
    "select 1;",
    "-- note\nSELECT 1",
    "/* DROP TABLE x; */ SELECT ';', 'INTO OUTFILE', 'it''s', 'a\\'b'",
    "(SELECT 1) UNION ALL (SELECT 2)",
    "WITH 1 AS x SELECT x",
    "SHOW TABLES",
    "DESCRIBE TABLE pairs_v1",
    "DESC pairs_v1",
    "DESCRIBE gnomon.`pairs_v1`",
    "DESCRIBE TABLE (SELECT count() FROM pairs_v1)",
    "EXISTS TABLE pairs",
    "EXPLAIN SELECT 1",
    "SELECT $$file('x'); DROP$$",
    "SELECT file FROM numbers(1)",
    'SELECT "outfile_" FROM t',
]
NOT_READING = [
    "",
    "DROP TABLE pairs",
    "INSERT INTO pairs VALUES (1)",
    "SELECT 1; DROP TABLE pairs",
    "SELECT 1 INTO OUTFILE 'x'",
    "SELECT 1 into\n/* */ outfile 'x'",
    "SELECT file('/etc/hosts')",
    "SELECT `file`('/etc/hosts')",
    "SELECT \"FILE\" /* x */ ('/etc/hosts')",
    "SELECT * FROM python('x')",
    "DESCRIBE TABLE url('http://127.0.0.1:1/x.csv')",
    "DESC (s3('x'))",
    "DESCRIBE \"fi\\x6ce\"('/etc/hosts', 'LineAsString')",
    "SELECT * FROM \"fi\\x6ce\"('/etc/hosts')",
    "KILL QUERY WHERE 1",
    "SET readonly = 0",
    "USE system",
    "SYSTEM FLUSH LOGS",
    "CREATE TEMPORARY TABLE z (a UInt8) ENGINE = Memory",
    "/* open SELECT 1",
    "SELECT 'open",
    "ATTACH TABLE x",
]


@pytest.mark.parametrize("sql", READING)
def test_what_reads_is_allowed(sql: str) -> None:
    assert why_not_read_only(sql) is None


@pytest.mark.parametrize("sql", NOT_READING)
def test_what_may_write_is_not(sql: str) -> None:
    assert why_not_read_only(sql) is not None


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
    assert returns_rows("show tables") and not returns_rows("OPTIMIZE TABLE x")
    assert format_at_end("SELECT 1\n FORMAT Native;") == "Native"
    assert format_at_end("SELECT 'FORMAT Native'") is None


def test_an_open_quote_is_an_error() -> None:
    with pytest.raises(FatalError, match="never closed at character 7"):
        words_of("SELECT 'open")
