"""What each client sends first, and how a result is streamed, failed, limited and left."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import clickhouse_connect
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, StreamFailureError

from compare.store import Store, embedded
from compare.store.blocks import pack_blocks, unpack_blocks
from compare.store.http_port import HttpPort
from compare.store.lockfile import Owner, read_owner
from compare.store.port_limits import PortLimits
from compare.store.reader_rules import is_closed_function
from ingest.settings import StoreSettings
from tests.compare.store.test_http_port import send

ENDLESS = "SELECT number FROM numbers(1000000000000)"


@pytest.fixture(scope="module")
def owner(migrated_store: Store, store_settings: StoreSettings) -> Owner:
    found = read_owner(Path(store_settings.url.removeprefix("chdb://")))
    assert found is not None
    return found


@pytest.fixture
def small_port(migrated_store: Store, store_settings: StoreSettings) -> Iterator[HttpPort]:
    """A port with one slot a side, which refuses at once."""
    folder = Path(store_settings.url.removeprefix("chdb://")).resolve()
    port = HttpPort(
        lambda: embedded._connect(folder),
        writer_token="w",
        reader_token="r",
        limits=PortLimits(
            reader_queries=1, writer_queries=1, queue_seconds=0.05, reader_seconds=20, reader_rows=500_000
        ),
    )
    port.start()
    yield port
    port.stop()


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def running(store: Store, text: str) -> int:
    sql = (
        "SELECT count() FROM system.processes WHERE query LIKE {like:String} AND query NOT LIKE '%processes%'"
    )
    return int(store.query(sql, {"like": f"%{text}%"}).rows[0][0])


def is_free(url: str, token: str) -> bool:
    return send(url, token, query="SELECT 1")[0] == 200


FIRST_STATEMENTS = [
    ("clickhouse-connect", "SELECT version(), timezone()"),
    ("clickhouse-connect", "SELECT name, value, readonly FROM system.settings LIMIT 10000"),
    ("clickhouse-go, Grafana", "SELECT displayName(), version(), revision(), timezone()"),
    ("Grafana", "SELECT version()"),
    ("Grafana", "SELECT name FROM system.databases"),
    ("Grafana", "SELECT name FROM system.tables WHERE database = 'gnomon'"),
    ("Grafana", 'DESC TABLE "gnomon"."pairs_v1"'),
    ("JDBC", "SELECT currentUser() AS user, timezone() AS timezone, version() AS version LIMIT 1"),
    ("JDBC", "SELECT name, type FROM system.columns WHERE database = 'gnomon' ORDER BY table, position"),
    ("DBeaver", "SELECT database()"),
    ("DBeaver", "SHOW DATABASES"),
    ("curl", "SELECT 1"),
]


@pytest.mark.parametrize(("client", "sql"), FIRST_STATEMENTS)
@pytest.mark.parametrize("format_name", ["TabSeparated", "Native", "RowBinaryWithNamesAndTypes", "JSON"])
def test_the_first_statements_of_clients_are_answered(
    owner: Owner, client: str, sql: str, format_name: str
) -> None:
    status, body, headers = send(
        owner.url, owner.reader_token, body=sql.encode(), headers={"X-ClickHouse-Format": format_name}
    )
    assert status == 200, (client, body)
    assert body
    assert headers["x-clickhouse-format"] == format_name
    assert len(headers["x-clickhouse-exception-tag"]) == 16


def test_grafana_reads_native_at_its_own_revision_in_gzip(owner: Owner) -> None:
    _, body, headers = send(
        owner.url,
        owner.reader_token,
        body=b"SELECT toUInt8(7) AS n",
        default_format="Native",
        client_protocol_version=54460,
        headers={"Accept-Encoding": "identity"},
    )
    assert body == bytes([1, 0, 2, 255, 255, 255, 255, 0, 1, 1, 1]) + b"n\x05UInt8\x00\x07"
    assert headers["content-type"] == "application/octet-stream"


def test_jdbc_reads_and_writes_blocks(owner: Owner) -> None:
    status, body, _ = send(
        owner.url, owner.writer_token, body=pack_blocks(b"SELECT 1 + 1"), compress=1, decompress=1
    )
    assert (status, unpack_blocks(body, 100)) == (200, b"2\n")
    assert send(owner.url, owner.writer_token, body=b"SELECT 1", decompress=1)[0] == 400


def test_a_multipart_form_may_be_compressed(owner: Owner) -> None:
    lines = ["--b", 'Content-Disposition: form-data; name="query"', "", "SELECT {x:UInt8} + 1", "--b"]
    lines += ['Content-Disposition: form-data; name="param_x"', "", "4", "--b--", ""]
    headers = {"Content-Type": "multipart/form-data; boundary=b", "Content-Encoding": "gzip"}
    body = gzip.compress("\r\n".join(lines).encode())
    assert send(owner.url, owner.reader_token, body=body, headers=headers)[1] == b"5\n"


@pytest.mark.parametrize("path", ["/", "/ping", "/replicas_status"])
def test_health_is_told_without_a_token(owner: Owner, path: str) -> None:
    url = urllib.parse.urlsplit(owner.url)
    connection = http.client.HTTPConnection(url.hostname or "", url.port)
    connection.request("GET", path)
    assert connection.getresponse().read() == b"Ok.\n"
    connection.close()


ROWS = 400_000
LINES = [f"{n}\t{n % 7}" for n in range(ROWS)]
LONG = f"SELECT number AS n, number % 7 AS m FROM numbers({ROWS}) ORDER BY n"


@pytest.mark.parametrize(
    ("format_name", "expected"),
    [
        ("TabSeparated", "\n".join([*LINES, ""])),
        ("TSVWithNames", "\n".join(["n\tm", *LINES, ""])),
        ("TabSeparatedWithNamesAndTypes", "\n".join(["n\tm", "UInt64\tUInt8", *LINES, ""])),
        ("CSVWithNames", "\n".join(['"n","m"', *(line.replace("\t", ",") for line in LINES), ""])),
    ],
)
def test_a_long_result_comes_in_pieces_with_one_head(owner: Owner, format_name: str, expected: str) -> None:
    _, body, headers = send(owner.url, owner.reader_token, query=LONG, default_format=format_name)
    assert headers.get("transfer-encoding") == "chunked"
    assert body.decode() == expected


@pytest.mark.parametrize(
    "format_name", ["CSVWithNames", "TabSeparatedWithNamesAndTypes", "JSON", "JSONEachRow"]
)
def test_an_empty_result_has_its_head(owner: Owner, format_name: str) -> None:
    sql = "SELECT 1 AS a WHERE 0"
    expected = {
        "CSVWithNames": b'"a"\n',
        "TabSeparatedWithNamesAndTypes": b"a\nUInt8\n",
        "JSONEachRow": b"",
    }
    body = send(owner.url, owner.reader_token, query=sql, default_format=format_name)[1]
    if format_name in expected:
        assert body == expected[format_name]
    else:
        assert b'"rows": 0' in body and b'"name": "a"' in body


def test_totals_are_not_lost(owner: Owner) -> None:
    sql = "SELECT number % 2 AS k, count() FROM numbers(4) GROUP BY k WITH TOTALS ORDER BY k"
    assert send(owner.url, owner.reader_token, query=sql)[1] == b"0\t2\n1\t2\n\n0\t4\n"


FAILS_LATE = "SELECT repeat('x', 90), throwIf(number = 5000000, 'late') FROM numbers(6000000)"


def test_a_failure_after_the_answer_began_is_told_in_it_and_cuts_it(owner: Owner) -> None:
    url = urllib.parse.urlsplit(owner.url)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=30)
    connection.request("POST", "/", FAILS_LATE, {"X-ClickHouse-Key": owner.reader_token})
    response = connection.getresponse()
    tag = response.headers["X-ClickHouse-Exception-Tag"]
    with pytest.raises(http.client.IncompleteRead) as caught:
        response.read()
    connection.close()
    end = caught.value.partial[-2000:].decode()
    assert f"\r\n__exception__\r\n{tag}\r\nCode: 395. DB::Exception: late" in end
    assert end.endswith(f" {tag}\r\n__exception__\r\n")


def test_clickhouse_connect_understands_a_late_failure(owner: Owner) -> None:
    url = urllib.parse.urlsplit(owner.url)
    client = clickhouse_connect.get_client(
        host=url.hostname or "", port=url.port or 0, username="default", password=owner.reader_token
    )
    with pytest.raises(StreamFailureError, match="late"):
        assert client.query(FAILS_LATE).result_rows == []
    with pytest.raises(DatabaseError) as caught:
        client.query("SELECT throwIf(number = 3) FROM numbers(4)")
    assert caught.value.code == 395
    client.close()


def test_an_answer_that_is_held_whole_has_a_bound(small_port: HttpPort) -> None:
    # 50 MB in the engine, twice as much as JSON, which escapes each tabulator.
    sql = "SELECT repeat('\\t', 100) AS t FROM numbers(490000) FORMAT JSON"
    status, body, headers = send(small_port.url, "r", query=sql)
    assert (status, headers["x-clickhouse-exception-code"]) == (500, "396"), body[:300]
    assert b"in a format that is streamed" in body


def leave_during(port_url: str, token: str, sql: str, *, after_bytes: int) -> None:
    url = urllib.parse.urlsplit(port_url)
    with socket.create_connection((url.hostname or "", url.port or 0)) as connection:
        head = (
            f"POST / HTTP/1.1\r\nHost: x\r\nX-ClickHouse-Key: {token}\r\nContent-Length: {len(sql)}\r\n\r\n"
        )
        connection.sendall((head + sql).encode())
        got = 0
        while got < after_bytes:
            got += len(connection.recv(65536))
        if not after_bytes:
            time.sleep(0.3)


@pytest.mark.parametrize(
    ("sql", "after_bytes"),
    [
        (ENDLESS, 3_000_000),
        ("SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))", 0),
    ],
)
def test_a_client_that_leaves_frees_its_slot_and_stops_its_query(
    small_port: HttpPort, migrated_store: Store, sql: str, after_bytes: int
) -> None:
    for token in ("w", "r") if not after_bytes else ("w",):
        leave_during(small_port.url, token, sql, after_bytes=after_bytes)
        until(lambda: running(migrated_store, "1000000000000") == 0)
        until(partial(is_free, small_port.url, token))
        assert running(migrated_store, "1000000000000") == 0


def test_a_stop_ends_what_only_reads_and_says_so(small_port: HttpPort, migrated_store: Store) -> None:
    sql = "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))"
    answers = []
    asking = threading.Thread(target=lambda: answers.append(send(small_port.url, "r", query=sql)))
    asking.start()
    until(lambda: running(migrated_store, "1000000000000") == 1)
    small_port.stop()
    asking.join()
    ((status, body, headers),) = answers
    assert (status, headers["x-clickhouse-exception-code"]) == (500, "236")
    assert b"the store's owner is stopping (ABORTED)" in body
    until(lambda: running(migrated_store, "1000000000000") == 0)


def test_readers_never_keep_a_writer_out(small_port: HttpPort, migrated_store: Store) -> None:
    slow = threading.Thread(target=send, args=(small_port.url, "r"), kwargs={"query": "SELECT sleep(2)"})
    slow.start()
    until(lambda: running(migrated_store, "SELECT sleep(2)") == 1)
    status, _, headers = send(small_port.url, "r", query="SELECT 1")
    assert (status, headers["x-clickhouse-exception-code"]) == (503, "202")
    assert send(small_port.url, "w", body=b"SELECT 1")[:2] == (200, b"1\n")
    slow.join()


def test_a_reader_is_held_to_its_limits(small_port: HttpPort, owner: Owner) -> None:
    def setting(name: str, **asked: Any) -> bytes:
        return send(small_port.url, "r", query=f"SELECT getSetting('{name}')", **asked)[1].strip()

    assert setting("max_execution_time") == b"20"
    assert setting("max_execution_time", max_execution_time="5") == b"5"
    assert setting("max_execution_time", max_execution_time="500") == b"20"
    assert setting("max_execution_time", max_execution_time="0") == b"20"
    assert setting("max_result_rows") == b"500000"
    assert setting("max_memory_usage", max_memory_usage="1000000") == b"1000000"
    assert setting("readonly", readonly="2") == b"1"
    for name in (
        "readonly",
        "max_memory_usage_for_user",
        "output_format_schema",
        "format_schema",
        "log_comment",
    ):
        given: dict[str, Any] = {name: "0"}
        status, body, headers = send(small_port.url, "r", query="SELECT 1", **given)
        assert (status, headers["x-clickhouse-exception-code"]) == (500, "164"), name
        assert f"Cannot modify '{name}'" in body.decode()
    sql = "SELECT number FROM numbers(1000000)"
    _, _, headers = send(small_port.url, "r", query=sql, wait_end_of_query=1)
    assert headers["x-clickhouse-exception-code"] == "396"


# Table functions of the engine that only compute, or read the store's own tables.
_HARMLESS = [
    "SQLStandardValues",
    "dictionary",
    "format",
    "fuzzJSON",
    "generateRandom",
    "generateSeries",
    "generate_series",
    "loop",
    "merge",
    "mergeTreeAnalyzeIndexes",
    "mergeTreeAnalyzeIndexesUUID",
    "mergeTreeCodecBlockCounts",
    "mergeTreeIndex",
    "mergeTreeProjection",
    "mergeTreeTextIndex",
    "null",
    "numbers",
    "numbers_mt",
    "primes",
    "prometheusQuery",
    "prometheusQueryRange",
    "timeSeriesData",
    "timeSeriesMetricFamilies",
    "timeSeriesMetrics",
    "timeSeriesSamples",
    "timeSeriesSelector",
    "timeSeriesTags",
    "values",
    "view",
    "viewExplain",
    "viewIfPermitted",
    "zeros",
    "zeros_mt",
]


def test_every_table_function_of_the_engine_is_closed_or_harmless(migrated_store: Store) -> None:
    """A new engine may bring a new way out: this names it."""
    names = [row[0] for row in migrated_store.query("SELECT name FROM system.table_functions")]
    assert [name for name in names if not is_closed_function(name) and name not in _HARMLESS] == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM {p:Identifier}('/etc/hosts')",
        "SELECT {p:Identifier}('/etc/hosts')",
        "SELECT * FROM numbers(1) WHERE number = {p:String}; DROP TABLE gnomon.pairs",
    ],
)
def test_a_parameter_carries_no_sql(owner: Owner, sql: str) -> None:
    status, _, headers = send(owner.url, owner.reader_token, query=sql, param_p="file")
    assert (status >= 400, headers["x-clickhouse-exception-code"] in ("62", "164")) == (True, True)


def test_a_reader_cannot_make_a_file(owner: Owner, tmp_path: Path) -> None:
    for sql in (
        f"SELECT * FROM sqlite('{tmp_path}/made.db', 't')",
        f"SELECT 1 INTO OUTFILE '{tmp_path}/made.txt'",
        f"SHOW TABLES INTO OUTFILE '{tmp_path}/made.txt'",
    ):
        send(owner.url, owner.reader_token, query=sql)
    assert list(tmp_path.iterdir()) == []


def test_values_of_parameters_are_only_values(owner: Owner) -> None:
    text: Any = "x' OR file('/etc/hosts') -- "
    body = send(owner.url, owner.reader_token, query="SELECT {p:String}", param_p=text)[1]
    assert body.decode() == text.replace("'", "\\'") + "\n"
