"""One request to the owner's port, read as a ClickHouse server reads it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping

import msgspec

from compare.store import sql_text, wire
from compare.store.body_encoding import BLOCKS, accepted_encoding, decode_body
from compare.store.port_errors import Refused
from compare.store.reader_rules import is_closed_format, why_not_read_only
from ingest.errors import FatalError

# Parameters of the protocol itself; any other one is a setting, as on a server.
_RESERVED = frozenset(
    [
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
    ]
)
_SETTING_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_FORMAT_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9]*$")
# chDB's Python layer would answer with objects instead of bytes.
_OBJECT_FORMATS = frozenset({"arrowtable", "dataframe", "datastore"})
_SESSION_WORDS = frozenset({"SET", "USE"})


class PortRequest(msgspec.Struct, frozen=True):
    """A statement with all that says how to run it and how to send its answer."""

    sql: str
    insert: wire.InsertStatement | None
    is_writer: bool
    is_read_only: bool
    database: str
    settings: dict[str, str]
    bound: dict[str, str]
    format: str
    query_id: str
    encoding: str | None
    revision: int
    is_whole: bool
    """Whether the answer may begin only when the query has ended (`wait_end_of_query=1`)."""


def read_request(
    method: str,
    params: Mapping[str, str],
    headers: Mapping[str, str],
    raw: bytes,
    *,
    is_writer: bool,
    body_limit: int,
) -> PortRequest:
    """The request in `method`, URL `params`, `headers` (lower case) and the `raw` body.

    Raises Refused, with ClickHouse's code, for what cannot be read or may not be run.
    """
    # As on a server, GET never writes.
    is_read_only = not is_writer or method in ("GET", "HEAD")
    params = dict(params)
    try:
        in_blocks = _is_on(params, "decompress")
        encoding = headers.get("content-encoding", "")
        body = decode_body(raw, encoding, in_blocks=in_blocks, limit=4 * body_limit)
        content_type = headers.get("content-type", "")
        if content_type.startswith("multipart/form-data"):
            params |= wire.parse_form(content_type, body)
            body = b""
        query = params.get("query", "")
        insert = wire.parse_insert(query, body)
        sql = "" if insert else f"{query}\n{body.decode()}".strip()
    except UnicodeDecodeError as error:
        raise Refused(62, "SYNTAX_ERROR", f"the query is not UTF-8: {error}") from error
    except FatalError as error:
        raise Refused(36, "BAD_ARGUMENTS", str(error)) from error
    _check(sql, insert, params, is_read_only=is_read_only)
    return PortRequest(
        sql=sql,
        insert=insert,
        is_writer=is_writer,
        is_read_only=is_read_only,
        database=params.get("database") or headers.get("x-clickhouse-database", ""),
        settings=_settings(params),
        bound={name[6:]: value for name, value in params.items() if name.startswith("param_")},
        format=_format(sql, params, headers, is_read_only=is_read_only),
        query_id=params.get("query_id") or headers.get("x-clickhouse-query-id") or str(uuid.uuid4()),
        encoding=_answer_encoding(params, headers),
        revision=_revision(params),
        is_whole=_is_on(params, "wait_end_of_query"),
    )


def _is_on(params: Mapping[str, str], name: str, default: str = "0") -> bool:
    return params.get(name, default).lower() not in ("0", "", "false")


def _check(
    sql: str, insert: wire.InsertStatement | None, params: Mapping[str, str], *, is_read_only: bool
) -> None:
    if _is_on(params, "session_check"):
        raise Refused(
            372, "SESSION_NOT_FOUND", "sessions are not kept: leave session_check and session_id out"
        )
    if insert:
        if is_read_only:
            raise Refused(164, "READONLY", "a read-only token cannot run INSERT")
        return
    try:
        words = sql_text.words_of(sql)
    except FatalError as error:
        raise Refused(62, "SYNTAX_ERROR", str(error)) from error
    if not words:
        raise Refused(62, "SYNTAX_ERROR", "Empty query")
    if words[0] in _SESSION_WORDS or words[:2] == ["CREATE", "TEMPORARY"]:
        message = (
            f"sessions are not kept, so {words[0]} has no use here: pass settings and database in the URL"
        )
        raise Refused(48, "NOT_IMPLEMENTED", message)
    reason = why_not_read_only(sql) if is_read_only else None
    if reason:
        raise Refused(164, "READONLY", reason)


def _settings(params: Mapping[str, str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for name, value in params.items():
        if name in _RESERVED or name.startswith("param_"):
            continue
        if not _SETTING_NAME.match(name):
            raise Refused(115, "UNKNOWN_SETTING", f"Unknown setting {name!r}")
        settings[name] = value
    return settings


def _format(sql: str, params: Mapping[str, str], headers: Mapping[str, str], *, is_read_only: bool) -> str:
    asked = params.get("default_format") or headers.get("x-clickhouse-format") or "TabSeparated"
    name = sql_text.format_at_end(sql) or asked
    if not _FORMAT_NAME.match(name) or name.lower() in _OBJECT_FORMATS:
        raise Refused(73, "UNKNOWN_FORMAT", f"Unknown format {name}")
    if is_read_only and is_closed_format(name):
        raise Refused(164, "READONLY", f"a read-only token cannot use the format {name}")
    return name


def _answer_encoding(params: Mapping[str, str], headers: Mapping[str, str]) -> str | None:
    """On a server of this engine's version `enable_http_compression` is on unless switched off."""
    if _is_on(params, "compress"):
        return BLOCKS
    if not _is_on(params, "enable_http_compression", "1"):
        return None
    return accepted_encoding(headers.get("accept-encoding", ""))


def _revision(params: Mapping[str, str]) -> int:
    text = params.get("client_protocol_version", "0")
    if not text.isdecimal():
        raise Refused(36, "BAD_ARGUMENTS", f"client_protocol_version is no number: {text!r}")
    return int(text)
