"""One suite on the embedded client and, through the owner's port, on clickhouse-connect's HTTP client."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import clickhouse_connect
import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from compare.store import Store
from compare.store.lockfile import Owner, read_owner
from ingest.settings import StoreSettings

CLIENTS = ["embedded", "http", "http plain", "http gzip", "http lz4", "http zstd", "http with sessions"]

TABLE = """
CREATE TABLE kinds
(
    k UInt64, s String, lc LowCardinality(String), n Nullable(Float32), b Bool, u UUID,
    d DateTime64(3, 'UTC'), a Array(LowCardinality(String)), aa Array(Array(Nullable(Float32))),
    m Map(LowCardinality(String), LowCardinality(String))
)
ENGINE = MergeTree ORDER BY k SETTINGS non_replicated_deduplication_window = 100
"""
KEY = uuid.UUID(int=7)
AT = datetime(2026, 11, 29, 3, 0, 0, 120000, tzinfo=UTC)
ROW: list[Any] = [1, "é\x00'\\", "x", None, True, KEY, AT, ["p", "q"], [[1.5, None], []], {"k": "v"}]


@pytest.fixture(scope="module")
def owner(migrated_store: Store, store_settings: StoreSettings) -> Owner:
    found = read_owner(Path(store_settings.url.removeprefix("chdb://")))
    assert found is not None
    return found


@pytest.fixture(scope="module", params=CLIENTS)
def client(
    request: pytest.FixtureRequest, migrated_store: Store, store_settings: StoreSettings, owner: Owner
) -> Iterator[Client]:
    kind, _, detail = request.param.partition(" ")
    if kind == "embedded":
        path = store_settings.url.removeprefix("chdb://")
        client = clickhouse_connect.get_client(interface="chdb", path=path, tz_mode="aware")
    else:
        address = urlsplit(owner.url)
        compress: Any = {"plain": False, "": True, "with sessions": True}.get(detail, detail)
        client = clickhouse_connect.get_client(
            host=address.hostname or "",
            port=address.port or 0,
            username="default",
            password=owner.writer_token,
            compress=compress,
            autogenerate_session_id=detail == "with sessions",
            tz_mode="aware",
        )
    client.command(f"CREATE DATABASE IF NOT EXISTS contract_{CLIENTS.index(request.param)}")
    client.database = f"contract_{CLIENTS.index(request.param)}"
    client.command(TABLE)
    yield client
    client.close()


def insert(client: Client, row: list[Any], token: str) -> None:
    client.insert("kinds", [row], settings={"insert_deduplication_token": token, "async_insert": 0})


def test_values_come_back_as_they_went(client: Client) -> None:
    insert(client, ROW, "first")
    (row,) = client.query("SELECT * FROM kinds WHERE k = 1").result_rows
    assert list(row) == ROW


def test_one_token_is_stored_once(client: Client) -> None:
    for _ in range(3):
        insert(client, [2, *ROW[1:]], "second")
    insert(client, [2, *ROW[1:]], "third")
    assert client.query("SELECT count() FROM kinds WHERE k = 2").result_rows == [(2,)]


def test_a_raw_insert_in_a_text_format(client: Client) -> None:
    block = '{"k": 3, "s": "raw"}\n{"k": 3, "s": "raw two"}\n'
    client.raw_insert("kinds", ["k", "s"], insert_block=block, fmt="JSONEachRow")
    assert client.query("SELECT s FROM kinds WHERE k = 3 ORDER BY s").result_rows == [("raw",), ("raw two",)]


def test_an_insert_with_values_in_the_statement(client: Client) -> None:
    client.command("INSERT INTO kinds (k, s) VALUES (4, 'a;b'), (4, 'FORMAT Native')")
    assert client.query("SELECT count() FROM kinds WHERE k = 4").result_rows == [(2,)]


def test_parameters_are_bound_by_the_engine(client: Client) -> None:
    text = "x' OR 1 -- \\ \n\t é"
    result = client.query(
        "SELECT {s:String}, {n:UInt64} + 1, {a:Array(String)}",
        parameters={"s": text, "n": 4, "a": ["p'", "q"]},
    )
    assert result.result_rows == [(text, 5, ["p'", "q"])]


def test_long_parameters_go_too(client: Client) -> None:
    text = "é'\n" * 20_000
    assert client.query("SELECT length({s:String})", parameters={"s": text}).result_rows == [(80_000,)]


def test_settings_hold_for_one_query(client: Client) -> None:
    sql = "SELECT getSetting('max_threads')"
    assert client.query(sql, settings={"max_threads": 3}).result_rows == [(3,)]
    assert client.query(sql).result_rows != [(3,)]


def test_many_blocks_come_whole(client: Client) -> None:
    result = client.query(
        "SELECT number, toString(number) FROM numbers(200000)", settings={"max_block_size": 1000}
    )
    assert len(result.result_rows) == 200_000
    assert result.result_rows[123_456] == (123_456, "123456")


def test_columns_of_a_result_cut_to_nothing(client: Client) -> None:
    assert client.query("SELECT k, lc FROM kinds LIMIT 0").column_names == ("k", "lc")


def test_other_formats(client: Client) -> None:
    assert client.raw_query("SELECT 1 AS a, 'x' AS b", fmt="CSVWithNames") == b'"a","b"\n1,"x"\n'
    assert client.command("SELECT 1") == 1
    assert client.command("SELECT 'a', 'b'") == ["a", "b"]
    assert client.command("EXISTS TABLE nowhere") == 0


def test_frames_arrive(client: Client) -> None:
    frame = client.query_df("SELECT number AS n, toString(number) AS s FROM numbers(3)")
    assert frame["s"].tolist() == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("sql", "code", "name"),
    [
        ("SELEC 1", 62, "SYNTAX_ERROR"),
        ("SELECT * FROM nowhere", 60, "UNKNOWN_TABLE"),
        ("SELECT nothing FROM kinds", 47, "UNKNOWN_IDENTIFIER"),
        ("SELECT throwIf(number = 2) FROM numbers(3)", 395, "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO"),
        (
            "SELECT sum(number) FROM numbers(10000000000) SETTINGS max_execution_time = 0.2",
            159,
            "TIMEOUT_EXCEEDED",
        ),
    ],
)
def test_errors_keep_their_code(client: Client, sql: str, code: int, name: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        client.query(sql)
    assert (caught.value.code, caught.value.name) == (code, name)


def test_a_violated_constraint_is_an_error_of_the_insert(client: Client) -> None:
    client.command("ALTER TABLE kinds ADD CONSTRAINT c CHECK k != 77")
    with pytest.raises(DatabaseError) as caught:
        insert(client, [77, *ROW[1:]], "bad")
    assert caught.value.code == 469
    client.command("ALTER TABLE kinds DROP CONSTRAINT c")


def test_a_ping_is_answered(client: Client) -> None:
    assert client.ping()
