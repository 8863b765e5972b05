"""What a read-only token may run. Every text of NOT_READING that could do harm did it on the real engine."""

from __future__ import annotations

import pytest

from compare.store.reader_rules import why_not_read_only

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
    "SELECT * APPLY(file) FROM (SELECT '/etc/hosts' AS a)",
    "SELECT * APPLY file FROM (SELECT '/etc/hosts' AS a)",
    "SELECT arrayMap(file, ['/etc/hosts'])",
    "WITH f AS (x -> file(x)) SELECT f('/etc/hosts')",
    "SELECT \u201cfile\u201d('/etc/hosts')",
    "SELECT \u2018'\u2019, file('/etc/hosts') -- '",
    "SELECT file\u200b('/etc/hosts')",
    "SELECT file\ufeff('/etc/hosts')",
    "SELECT file\u3000('/etc/hosts')",
    "SELECT 1 // '\n, file('/etc/hosts') -- '",
    "EXPLAIN SELECT file('/etc/hosts')",
    "SELECT * FROM sqlite('/tmp/never.db', 't')",
    "SELECT * FROM s3Cluster('c', 'http://127.0.0.1:9/a/b')",
    "SELECT 1 PARALLEL WITH DROP TABLE x",
    "SELECT aiGenerate('x')",
    "SELECT logTrace('x')",
    "SELECT 1 FORMAT Template",
    "SHOW TABLES INTO OUTFILE 'x'",
    "WITH 1 AS x INSERT INTO pairs SELECT x",
]


@pytest.mark.parametrize("sql", READING)
def test_what_reads_is_allowed(sql: str) -> None:
    assert why_not_read_only(sql) is None


@pytest.mark.parametrize("sql", NOT_READING)
def test_what_may_write_is_not(sql: str) -> None:
    assert why_not_read_only(sql) is not None
