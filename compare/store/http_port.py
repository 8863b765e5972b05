"""The owner's loopback HTTP port: the ClickHouse HTTP protocol in front of the embedded engine.

Each request runs on an engine handle of its own, so settings, database and read-only mode of one
client never reach another. Sessions are therefore not kept.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from compare.store import sql_text, wire
from ingest.errors import FatalError

MAX_BODY_BYTES = 256 * 1024 * 1024
_QUEUE_SECONDS = 10.0
_START_SECONDS = 15.0

# Parameters of the protocol itself; any other one is a setting, as on a server.
_RESERVED = frozenset(
    {
        "query",
        "database",
        "default_format",
        "user",
        "password",
        "quota_key",
        "session_id",
        "session_timeout",
        "session_check",
        "role",
        "query_id",
        "wait_end_of_query",
        "buffer_size",
        "compress",
        "decompress",
        "enable_http_compression",
        "client_protocol_version",
        "send_progress_in_http_headers",
        "http_headers_progress_interval_ms",
        "add_http_cors_header",
        "close_session",
    }
)
_SETTING_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


class PortLimits(msgspec.Struct, frozen=True):
    """What the port allows: queries at once, seconds and result bytes a query."""

    concurrent_queries: int = 8
    query_seconds: float = 300.0
    result_bytes: int = 256 * 1024 * 1024


class _Refused(Exception):
    """An answer with a ClickHouse error code."""

    def __init__(self, code: int, name: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.name = name


class HttpPort:
    """A server in a thread. `connect` makes a new engine handle (`chdb.connect`)."""

    def __init__(
        self,
        connect: Callable[[], Any],
        *,
        writer_token: str,
        reader_token: str,
        limits: PortLimits | None = None,
    ) -> None:
        self._connect = connect
        self._writer_token = writer_token.encode()
        self._reader_token = reader_token.encode()
        self._limits = limits or PortLimits()
        self._slots = threading.BoundedSemaphore(self._limits.concurrent_queries)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        app = Starlette(
            routes=[
                Route("/ping", self._ping, methods=["GET", "HEAD"]),
                Route("/", self._answer, methods=["GET", "POST"]),
            ]
        )
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="error",
                access_log=False,
                lifespan="off",
                ws="none",
                timeout_graceful_shutdown=5,
                timeout_keep_alive=30,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="store-port", daemon=True
        )

    def start(self) -> None:
        """Serve. Raises FatalError if the server does not come up."""
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise FatalError(f"store port {self.url} did not start")
            time.sleep(0.005)

    def stop(self) -> None:
        """Answer what is running (at most 5 seconds), then close."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    async def _ping(self, request: Request) -> Response:
        return PlainTextResponse("Ok.\n")

    async def _answer(self, request: Request) -> Response:
        query_id = request.query_params.get("query_id") or str(uuid.uuid4())
        try:
            if int(request.headers.get("content-length") or 0) > MAX_BODY_BYTES:
                raise _Refused(223, "QUERY_IS_TOO_LARGE", f"the body is over {MAX_BODY_BYTES} bytes")
            is_writer = self._authenticate(request)
            raw = await request.body()
            response = await run_in_threadpool(self._run, request, raw, is_writer, query_id)
        except _Refused as refused:
            response = _error(
                refused.code, f"Code: {refused.code}. DB::Exception: {refused} ({refused.name})"
            )
        response.headers["X-ClickHouse-Query-Id"] = query_id
        response.headers["X-ClickHouse-Server-Display-Name"] = "gnomon"
        return response

    def _authenticate(self, request: Request) -> bool:
        """Whether the request carries the writer's token (else the reader's). Refuses any other."""
        given = _token_of(request).encode()
        # Both are always compared, so that the time taken tells nothing.
        is_writer = hmac.compare_digest(given, self._writer_token)
        is_reader = hmac.compare_digest(given, self._reader_token)
        if not (is_writer or is_reader):
            message = "Authentication failed: the password must be a token from gnomon.lock."
            raise _Refused(516, "AUTHENTICATION_FAILED", message)
        return is_writer

    def _run(self, request: Request, raw: bytes, is_writer: bool, query_id: str) -> Response:
        params = dict(request.query_params)
        try:
            body = wire.decode_body(raw, request.headers.get("content-encoding", ""))
            content_type = request.headers.get("content-type", "")
            if content_type.startswith("multipart/form-data"):
                params |= wire.parse_form(content_type, body)
                body = b""
            query = params.get("query", "")
            insert = wire.parse_insert(query, body)
            sql = "" if insert else f"{query}\n{body.decode()}".strip()
        except UnicodeDecodeError as error:
            raise _Refused(62, "SYNTAX_ERROR", f"the query is not UTF-8: {error}") from error
        except FatalError as error:
            raise _Refused(36, "BAD_ARGUMENTS", str(error)) from error
        # As on a server, GET never writes.
        is_read_only = not is_writer or request.method == "GET"
        self._check(sql, insert, params, is_read_only)
        if not self._slots.acquire(timeout=_QUEUE_SECONDS):
            message = f"Too many simultaneous queries. Maximum: {self._limits.concurrent_queries}."
            raise _Refused(202, "TOO_MANY_SIMULTANEOUS_QUERIES", message)
        try:
            return self._execute(request, params, sql, insert, is_read_only, query_id)
        finally:
            self._slots.release()

    def _check(
        self, sql: str, insert: wire.InsertStatement | None, params: Mapping[str, str], is_read_only: bool
    ) -> None:
        for flag in ("compress", "decompress"):
            if params.get(flag, "0") not in ("0", ""):
                message = f"{flag}=1 is not supported here: use Content-Encoding or Accept-Encoding"
                raise _Refused(48, "NOT_IMPLEMENTED", message)
        if insert:
            if is_read_only:
                raise _Refused(164, "READONLY", "a read-only token cannot run INSERT")
            return
        try:
            words = sql_text.words_of(sql)
        except FatalError as error:
            raise _Refused(62, "SYNTAX_ERROR", str(error)) from error
        if not words:
            raise _Refused(62, "SYNTAX_ERROR", "Empty query")
        if words[0] in ("SET", "USE") or words[:2] == ["CREATE", "TEMPORARY"]:
            message = (
                f"sessions are not kept, so {words[0]} has no use here: pass settings and database in the URL"
            )
            raise _Refused(48, "NOT_IMPLEMENTED", message)
        reason = sql_text.why_not_read_only(sql) if is_read_only else None
        if reason:
            raise _Refused(164, "READONLY", reason)

    def _execute(
        self,
        request: Request,
        params: dict[str, str],
        sql: str,
        insert: wire.InsertStatement | None,
        is_read_only: bool,
        query_id: str,
    ) -> Response:
        asked = params.get("default_format") or request.headers.get("x-clickhouse-format") or "TabSeparated"
        format_name = sql_text.format_at_end(sql) or asked
        bound = {name[6:]: value for name, value in params.items() if name.startswith("param_")}
        handle = self._connect()
        try:
            self._prepare(handle, params, request, is_read_only, query_id)
            if insert:
                result = _insert_from_file(handle, insert)
                data = b""
            else:
                result = handle.query(sql, format_name, params=bound)
                data = result.bytes() or b""
                if not data and format_name == "Native" and sql_text.first_word(sql) in ("SELECT", "WITH"):
                    data = wire.native_header(_columns_of(handle, sql, bound))
        except RuntimeError as error:
            raise _engine_error(error) from error
        finally:
            handle.close()
        headers = {"X-ClickHouse-Summary": _summary(result, is_insert=insert is not None)}
        if not insert and sql_text.returns_rows(sql):
            headers["X-ClickHouse-Format"] = format_name
        if params.get("enable_http_compression", "0") != "0":
            data, encoding = wire.encode_body(data, request.headers.get("accept-encoding", ""))
            if encoding:
                headers["Content-Encoding"] = encoding
        return Response(data, media_type="text/plain; charset=UTF-8", headers=headers)

    def _prepare(
        self, handle: Any, params: dict[str, str], request: Request, is_read_only: bool, query_id: str
    ) -> None:
        """Give a new handle its database, limits and settings; read-only mode last, for it is final."""
        database = params.get("database") or request.headers.get("x-clickhouse-database")
        if database:
            escaped = database.replace("\\", "\\\\").replace("`", "\\`")
            handle.query(f"USE `{escaped}`", "TabSeparated")
        settings: dict[str, str] = {
            "max_execution_time": str(self._limits.query_seconds),
            "max_result_bytes": str(self._limits.result_bytes),
            # The engine cannot take a query_id from us; this makes the query findable in system.processes.
            "log_comment": query_id,
        }
        for name, value in params.items():
            if name in _RESERVED or name.startswith("param_"):
                continue
            if not _SETTING_NAME.match(name):
                raise _Refused(115, "UNKNOWN_SETTING", f"Unknown setting {name!r}")
            settings[name] = value
        if is_read_only:
            settings.pop("readonly", None)
        handle.query("SET " + ", ".join(f"{k} = {_quoted(v)}" for k, v in settings.items()), "TabSeparated")
        if is_read_only:
            handle.query("SET readonly = 1", "TabSeparated")


def _insert_from_file(handle: Any, insert: wire.InsertStatement) -> Any:
    with tempfile.NamedTemporaryFile(suffix=".insert") as file:
        file.write(insert.data)
        file.flush()
        return handle.query(insert.from_file(file.name), "TabSeparated")


def _columns_of(handle: Any, sql: str, bound: dict[str, str]) -> list[tuple[str, str]]:
    inner = re.sub(r"\bFORMAT\s+\w+\s*;?\s*$", "", sql, flags=re.IGNORECASE).rstrip().rstrip(";")
    rows = handle.query(f"DESCRIBE TABLE ({inner}\n)", "JSONCompactEachRow", params=bound).bytes()
    return [(row[0], row[1]) for row in map(msgspec.json.decode, rows.splitlines())]


def _engine_error(error: RuntimeError) -> _Refused:
    text = str(error)
    code = re.search(r"Code: (\d+)", text)
    names = re.findall(r"\(([A-Z][A-Z0-9_]+)\)", text)
    message = re.sub(r"^.*?Code: \d+\. DB::Exception: ", "", text, flags=re.DOTALL)
    message = re.sub(r"\s*\([A-Z][A-Z0-9_]+\)\s*$", "", message)
    return _Refused(
        int(code.group(1)) if code else 1002, names[-1] if names else "UNKNOWN_EXCEPTION", message
    )


def _error(code: int, text: str) -> Response:
    return PlainTextResponse(
        text + "\n", status_code=wire.status_of(code), headers={"X-ClickHouse-Exception-Code": str(code)}
    )


def _token_of(request: Request) -> str:
    """The password, wherever ClickHouse clients put it; empty if there is none."""
    key = request.headers.get("x-clickhouse-key") or request.query_params.get("password")
    if key:
        return key
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _summary(result: Any, *, is_insert: bool) -> str:
    # An insert from a file reads exactly the rows that it writes.
    rows, size = str(result.rows_read()), str(result.bytes_read())
    names = ("written_rows", "written_bytes") if is_insert else ("read_rows", "read_bytes")
    summary = {"read_rows": "0", "read_bytes": "0", "written_rows": "0", "written_bytes": "0"}
    summary |= {names[0]: rows, names[1]: size, "elapsed_ns": str(int(result.elapsed() * 1e9))}
    return msgspec.json.encode(summary).decode()
