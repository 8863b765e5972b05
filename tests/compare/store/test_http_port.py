"""The port as curl, DBeaver or an attacker would use it, on the real engine."""

from __future__ import annotations

import base64
import gzip
import socket
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import lz4.frame  # type: ignore[import-untyped]
import pytest
import zstandard

from compare.store import Store, embedded
from compare.store.http_port import HttpPort
from compare.store.lockfile import Owner, read_owner
from compare.store.port_limits import PortLimits
from ingest.settings import StoreSettings
from tests.compare.store.test_reader_rules import NOT_READING

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@pytest.fixture(scope="module")
def owner(migrated_store: Store, store_settings: StoreSettings) -> Owner:
    found = read_owner(Path(store_settings.url.removeprefix("chdb://")))
    assert found is not None
    return found


def send(
    url: str,
    token: str | None,
    *,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    path: str = "/",
    **params: Any,
) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and lower-case headers."""
    request = urllib.request.Request(f"{url}{path}?{urllib.parse.urlencode(params)}", data=body)
    for name, value in ({"X-ClickHouse-Key": token} if token else {}).items():
        request.add_header(name, value)
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    try:
        with _OPENER.open(request, timeout=30) as response:
            return response.status, response.read(), {k.lower(): v for k, v in response.headers.items()}
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), {k.lower(): v for k, v in error.headers.items()}


def test_it_listens_on_loopback_only(owner: Owner) -> None:
    assert owner.url.startswith("http://127.0.0.1:")


def test_the_second_piece_of_an_answer_does_not_wait_for_the_clients_ack() -> None:
    """With Nagle's algorithm each answer on a connection that is kept takes 40 ms more."""
    port = HttpPort(lambda: None, writer_token="w", reader_token="r")
    with port._socket, socket.create_connection(port._socket.getsockname()):
        connection, _ = port._socket.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    port._runner.close()


def test_ping_needs_no_token(owner: Owner) -> None:
    assert send(owner.url, None, path="/ping")[:2] == (200, b"Ok.\n")


@pytest.mark.parametrize("token", [None, "wrong", "é"])
def test_without_a_token_nothing_runs(owner: Owner, token: str | None) -> None:
    status, body, headers = send(owner.url, None, query="SELECT 1", password=token or "")
    assert (status, headers["x-clickhouse-exception-code"]) == (403, "516")
    assert body.startswith(b"Code: 516. DB::Exception: Authentication failed")


def test_the_token_is_taken_wherever_clients_put_it(owner: Owner) -> None:
    basic = base64.b64encode(f"default:{owner.reader_token}".encode()).decode()
    ways: list[dict[str, Any]] = [
        {"headers": {"Authorization": f"Basic {basic}"}},
        {"headers": {"Authorization": f"Bearer {owner.reader_token}"}},
        {"headers": {"X-ClickHouse-Key": owner.reader_token}},
        {"user": "default", "password": owner.reader_token},
    ]
    for way in ways:
        assert send(owner.url, None, query="SELECT 1", **way)[:2] == (200, b"1\n"), way


def test_the_statement_may_be_in_the_url_the_body_or_both(owner: Owner) -> None:
    token = owner.writer_token
    assert send(owner.url, token, query="SELECT 1")[1] == b"1\n"
    assert send(owner.url, token, body=b"SELECT 2")[1] == b"2\n"
    assert send(owner.url, token, query="SELECT", body=b"3")[1] == b"3\n"


def test_formats_parameters_and_headers(owner: Owner) -> None:
    status, body, headers = send(
        owner.url,
        owner.reader_token,
        query="SELECT {n:UInt8} AS a",
        param_n=7,
        default_format="JSONEachRow",
        query_id="mine",
        database="gnomon",
    )
    assert (status, body) == (200, b'{"a":7}\n')
    assert headers["x-clickhouse-format"] == "JSONEachRow"
    assert headers["x-clickhouse-query-id"] == "mine"
    assert '"read_rows":"1"' in headers["x-clickhouse-summary"]
    assert send(owner.url, owner.reader_token, query="SELECT 1 AS a FORMAT CSVWithNames")[1] == b'"a"\n1\n'


@pytest.mark.parametrize("sql", NOT_READING)
@pytest.mark.parametrize("way", ["url", "body"])
def test_a_read_only_token_reads_only(owner: Owner, sql: str, way: str) -> None:
    given: dict[str, Any] = {"query": sql} if way == "url" else {"body": sql.encode()}
    status, body, headers = send(owner.url, owner.reader_token, readonly="0", **given)
    assert status >= 400, body
    assert headers["x-clickhouse-exception-code"] in ("62", "164", "48")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM file('/etc/hosts', 'LineAsString')",
        "SELECT * FROM url('http://127.0.0.1:9/', 'LineAsString')",
        "SELECT * FROM executable('id', TSV, 'a String')",
        "SELECT 1 SETTINGS readonly = 0",
        "EXPLAIN ESTIMATE SELECT * FROM file('/etc/hosts', 'LineAsString')",
    ],
)
def test_the_engine_itself_closes_table_functions_to_readers(owner: Owner, sql: str) -> None:
    status, body, headers = send(owner.url, owner.reader_token, query=sql)
    assert (status, headers["x-clickhouse-exception-code"]) == (500, "164"), body


def test_get_never_writes_even_with_the_writers_token(owner: Owner) -> None:
    sql = "CREATE TABLE gnomon.by_get (a UInt8) ENGINE = Memory"
    assert send(owner.url, owner.writer_token, query=sql)[2]["x-clickhouse-exception-code"] == "164"
    assert send(owner.url, owner.writer_token, query="EXISTS TABLE gnomon.by_get")[1] == b"0\n"


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("gzip", gzip.compress),
        ("lz4", lz4.frame.compress),
        ("zstd", lambda data: zstandard.ZstdCompressor().compress(data)),
        ("identity", bytes),
    ],
)
def test_bodies_come_and_go_in_every_encoding(owner: Owner, encoding: str, encode: Any) -> None:
    decode = {
        "gzip": gzip.decompress,
        "lz4": lz4.frame.decompress,
        "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
        "identity": bytes,
    }[encoding]
    headers = {"Content-Encoding": encoding, "Accept-Encoding": encoding}
    sql = encode(b"SELECT repeat('x', 100000)")
    status, body, answered = send(
        owner.url, owner.reader_token, body=sql, headers=headers, enable_http_compression=1
    )
    assert status == 200
    assert answered.get("content-encoding", "identity") == encoding
    assert decode(body) == b"x" * 100_000 + b"\n"


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"query": "SELECT 1", "headers": {"Content-Encoding": "br"}, "body": b" "}, "36", "br"),
        ({"body": b"not gzip", "headers": {"Content-Encoding": "gzip"}}, "36", "not valid gzip"),
        ({"body": b"\xff\xfe"}, "62", "not UTF-8"),
        ({"query": "SET max_threads = 1", "body": b" "}, "48", "sessions are not kept"),
        ({"query": "SELECT 1", "session_check": "1"}, "372", "sessions are not kept"),
        ({"query": "SELECT 1", "default_format": "DataFrame"}, "73", "Unknown format"),
        ({"query": "SELECT 1", "default_format": "CSV; DROP"}, "73", "Unknown format"),
        ({"query": "SELECT 1 FORMAT Nonsense"}, "73", "Nonsense"),
        ({"query": "SELECT 1", "client_protocol_version": "x"}, "36", "client_protocol_version"),
        ({"query": "SELECT 1", "no_such_setting": "1"}, "115", "no_such_setting"),
        ({"query": "SELECT 1", "a;b": "1"}, "115", "a;b"),
        ({"query": "SELECT 1", "database": "no`where"}, "81", "does not exist"),
        ({"body": b"  "}, "62", "Empty query"),
        ({"query": "SELECT length(groupArray(number)) FROM numbers(1000000000)"}, "241", "memory limit"),
    ],
)
def test_errors_say_what_is_wrong(owner: Owner, given: dict[str, Any], code: str, words: str) -> None:
    status, body, headers = send(owner.url, owner.writer_token, **given)
    assert status >= 400
    assert headers["x-clickhouse-exception-code"] == code, body
    assert words in body.decode()
    assert body.startswith(f"Code: {code}. DB::Exception: ".encode())


def test_settings_of_one_client_never_reach_another(owner: Owner) -> None:
    sql = "SELECT getSetting('max_threads')"
    assert send(owner.url, owner.writer_token, query=sql, max_threads=3)[1] == b"3\n"
    assert send(owner.url, owner.writer_token, query=sql)[1] != b"3\n"


def test_sixteen_readers_at_once_while_a_writer_inserts(owner: Owner, migrated_store: Store) -> None:
    migrated_store.command("CREATE TABLE IF NOT EXISTS busy (a UInt64) ENGINE = MergeTree ORDER BY a")
    wrong: list[Any] = []

    def read() -> None:
        for _ in range(5):
            answer = send(
                owner.url,
                owner.reader_token,
                query="SELECT count() = uniqExact(a) FROM busy",
                database="gnomon",
            )
            if answer[:2] != (200, b"1\n"):
                wrong.append(answer)

    readers = [threading.Thread(target=read) for _ in range(16)]
    for reader in readers:
        reader.start()
    for block in range(10):
        migrated_store.insert("busy", ["a"], [(block * 100 + n,) for n in range(100)])
    for reader in readers:
        reader.join()
    assert wrong == []
    assert migrated_store.query("SELECT count() FROM busy").rows == [(1000,)]


def test_queries_beyond_the_limit_are_refused_not_piled_up(
    migrated_store: Store, store_settings: StoreSettings
) -> None:
    folder = Path(store_settings.url.removeprefix("chdb://")).resolve()
    port = HttpPort(
        lambda: embedded._connect(folder),
        writer_token="w",
        reader_token="r",
        limits=PortLimits(reader_queries=1, queue_seconds=0.05),
    )
    port.start()
    try:
        slow = threading.Thread(target=send, args=(port.url, "r"), kwargs={"query": "SELECT sleep(1)"})
        slow.start()
        running = "SELECT count() FROM system.processes WHERE query LIKE 'SELECT sleep(1)%'"
        while migrated_store.query(running).rows == [(0,)]:
            pass
        status, _, headers = send(port.url, "r", query="SELECT 1")
        assert (status, headers["x-clickhouse-exception-code"]) == (503, "202")
        slow.join()
        assert send(port.url, "r", query="SELECT 1")[1] == b"1\n"
    finally:
        port.stop()
