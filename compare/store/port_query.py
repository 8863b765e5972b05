"""One statement of the port on an engine handle of its own: limits, streamed answer, cancelling."""

from __future__ import annotations

import re
import tempfile
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from compare.store import sql_text, wire
from compare.store.native_revision import at_revision
from compare.store.port_errors import Refused, of_engine
from compare.store.port_limits import PortLimits, reader_settings, writer_settings
from compare.store.port_request import PortRequest
from compare.store.reader_rules import why_not_read_only
from ingest.errors import FatalError

_FIRST_BYTES = 1024 * 1024
"""A shorter answer is whole before it begins, so that an error still comes with its HTTP status."""

# chDB sends each block of a streamed query as a document of its own: only formats without a head or a
# foot may be joined (each one compared with the unstreamed answer on several blocks).
_STREAMED = frozenset(
    [
        "bsoneachrow",
        "csv",
        "jsoncompacteachrow",
        "jsoncompactstringseachrow",
        "jsoneachrow",
        "jsonl",
        "jsonlines",
        "jsonstringseachrow",
        "msgpack",
        "native",
        "ndjson",
        "rowbinary",
        "tabseparated",
        "tabseparatedraw",
        "tskv",
        "tsv",
        "tsvraw",
    ]
)
_HEADED = re.compile(
    r"^(csv|tsv|tsvraw|tabseparated|tabseparatedraw|rowbinary|jsoncompacteachrow|jsoncompactstringseachrow)"
    r"withnames(andtypes)?$"
)

_known_to_read: dict[str, None] = {}
"""Statements that the reader's rules let through: the engine's parser, which takes a millisecond of a
processor, says the same of the same text. A page asks its own again and again.
"""
_MOST_KNOWN = 1000
_LONGEST_KNOWN = 16 * 1024


class PortQuery:
    """Run with `start()`, then `more()` until it returns None, then `close()`; all may block.

    `cancel()` may be called from another thread at any time.
    """

    def __init__(self, connect: Callable[[], Any], request: PortRequest, limits: PortLimits) -> None:
        self._connect = connect
        self._request = request
        self._limits = limits
        self._tag = f"{uuid.uuid4()} {request.query_id}"
        self._handle: Any = None
        self._stream: Any = None
        self._head = b""
        self._is_first = True
        self._read = [0, 0]
        self._written = [0, 0]
        self._elapsed = 0.0
        self.is_streamed = request.insert is None and self._can_stream()
        """Whether the answer may come in pieces: such a query only reads."""

    def start(self) -> tuple[bytes, bool]:
        """The answer's first bytes, and whether they are all of it. Raises Refused."""
        try:
            self._handle = self._connect()
            self._prepare(self._handle)
            if self._request.insert:
                self._insert(self._request.insert)
                return b"", True
            if not self.is_streamed:
                return self._whole(), True
            self._stream = self._handle.send_query(
                self._request.sql, self._request.format, params=self._request.bound
            )
            return self._first()
        except RuntimeError as error:
            raise of_engine(error) from error

    def more(self) -> bytes | None:
        """The next bytes, or None at the end. Raises Refused."""
        try:
            return self._next()
        except RuntimeError as error:
            raise of_engine(error) from error

    def cancel(self) -> None:
        """Ask the engine to stop the statement; no harm if it has ended or not begun."""
        handle = self._connect()
        try:
            handle.query(f"KILL QUERY WHERE Settings['log_comment'] = {_quoted(self._tag)} ASYNC", "Null")
        finally:
            handle.close()

    def close(self) -> None:
        """Give the handle back; a stream that has not ended is cancelled."""
        stream, self._stream = self._stream, None
        handle, self._handle = self._handle, None
        try:
            if stream is not None:
                stream.cancel()
        finally:
            if handle is not None:
                handle.close()

    def summary(self) -> str:
        """What has been read and written so far, as `X-ClickHouse-Summary` tells it."""
        names = ("read_rows", "read_bytes", "written_rows", "written_bytes")
        counts = dict(zip(names, map(str, [*self._read, *self._written]), strict=True))
        return msgspec.json.encode(counts | {"elapsed_ns": str(int(self._elapsed * 1e9))}).decode()

    def _prepare(self, handle: Any) -> None:
        """Give a new handle its database, limits and settings; read-only mode last, for it is final."""
        request = self._request
        if request.database:
            escaped = request.database.replace("\\", "\\\\").replace("`", "\\`")
            handle.query(f"USE `{escaped}`", "Null")
        limited = writer_settings if request.is_writer else reader_settings
        # The engine takes no query_id from us; the comment is how `cancel` finds the query.
        settings = limited(request.settings, self._limits) | {"log_comment": self._tag}
        if not request.insert and not self.is_streamed:
            settings.setdefault("max_result_bytes", str(self._limits.buffered_bytes))
        given = [f"{name} = {_quoted(value)}" for name, value in settings.items()]
        if request.is_read_only:
            given.append("readonly = 1")
        handle.query("SET " + ", ".join(given), "Null")
        if request.is_read_only:
            self._check_canonical(handle)

    def _check_canonical(self, handle: Any) -> None:
        """Apply the reader's rules to the statement as the engine's own parser understood it."""
        given = self._request.sql.rstrip().rstrip(";")
        if given in _known_to_read:
            return
        answer = handle.query(f"SELECT formatQueryOrNull({_quoted(given)})", "JSONCompactEachRow")
        canonical = msgspec.json.decode(answer.bytes())[0]
        if canonical is None:
            # The engine says best what it cannot parse.
            handle.query(f"EXPLAIN AST {given}", "Null")
            raise Refused(62, "SYNTAX_ERROR", "the statement cannot be parsed alone")
        if reason := why_not_read_only(canonical):
            raise Refused(164, "READONLY", reason)
        if len(given) <= _LONGEST_KNOWN:
            if len(_known_to_read) >= _MOST_KNOWN:
                _known_to_read.clear()
            _known_to_read[given] = None

    def _can_stream(self) -> bool:
        if sql_text.first_word(self._request.sql) not in ("SELECT", "WITH"):
            return False
        words = sql_text.words_of(self._request.sql)
        # A stream leaves totals and extremes out.
        if "TOTALS" in words or "EXTREMES" in words or "extremes" in self._request.settings:
            return False
        if "OUTFILE" in words or "INSERT" in words:
            return False
        name = self._request.format.lower()
        return name in _STREAMED or _HEADED.match(name) is not None

    def _whole(self) -> bytes:
        request = self._request
        limit = self._limits.buffered_bytes
        result = self._handle.query(request.sql, request.format, params=request.bound)
        self._count(result)
        data: bytes = result.bytes() or b""
        if not data and request.format == "Native" and self._answers_query():
            data = self._native_head()
        if len(data) > limit:
            raise Refused(
                396,
                "TOO_MANY_ROWS_OR_BYTES",
                f"an answer in {request.format} is held whole and may not be over {limit} bytes: "
                "ask for less, or in a format that is streamed (Native, CSV, TabSeparated, JSONEachRow)",
            )
        return self._at_revision(data)

    def _first(self) -> tuple[bytes, bool]:
        limit = self._limits.buffered_bytes if self._request.is_whole else _FIRST_BYTES
        gathered = bytearray()
        while len(gathered) < limit:
            piece = self._next()
            if piece is None:
                return bytes(gathered) if gathered else self._empty(), True
            gathered += piece
        return bytes(gathered), False

    def _next(self) -> bytes | None:
        """The next block; all but the first lose the head that chDB gives to each."""
        if self._stream is None:
            return None
        result = self._stream.fetch()
        if result is None:
            self._stream = None
            return None
        self._count(result)
        data: bytes = result.bytes()
        if _HEADED.match(self._request.format.lower()):
            if not self._is_first:
                self._head = self._head or self._on_another_handle(self._headed_only)
                data = data.removeprefix(self._head)
            self._is_first = False
        return self._at_revision(data)

    def _empty(self) -> bytes:
        """The answer to a query without rows, which a stream leaves out: head and all."""
        if self._request.format == "Native":
            return self._at_revision(self._native_head())
        return self._headed_only(self._handle)

    def _headed_only(self, handle: Any) -> bytes:
        sql = f"SELECT * FROM ({sql_text.without_format(self._request.sql)}\n) LIMIT 0"
        data: bytes = handle.query(sql, self._request.format, params=self._request.bound).bytes() or b""
        return data

    def _on_another_handle(self, run: Callable[[Any], bytes]) -> bytes:
        """A handle that streams takes no second statement."""
        handle = self._connect()
        try:
            self._prepare(handle)
            return run(handle)
        finally:
            handle.close()

    def _answers_query(self) -> bool:
        return sql_text.first_word(self._request.sql) in ("SELECT", "WITH")

    def _native_head(self) -> bytes:
        inner = sql_text.without_format(self._request.sql)
        rows = self._handle.query(
            f"DESCRIBE TABLE ({inner}\n)", "JSONCompactEachRow", params=self._request.bound
        )
        columns = [(row[0], row[1]) for row in map(msgspec.json.decode, rows.bytes().splitlines())]
        return wire.native_header(columns)

    def _at_revision(self, data: bytes) -> bytes:
        if self._request.format != "Native":
            return data
        try:
            return at_revision(data, self._request.revision)
        except FatalError as error:
            raise Refused(48, "NOT_IMPLEMENTED", str(error)) from error

    def _insert(self, insert: wire.InsertStatement) -> None:
        with tempfile.NamedTemporaryFile(suffix=".insert") as file:
            file.write(insert.data)
            file.flush()
            result = self._handle.query(insert.from_file(file.name), "Null")
        # An insert from a file reads exactly the rows that it writes.
        self._written = [result.rows_read(), result.bytes_read()]
        self._elapsed = result.elapsed()

    def _count(self, result: Any) -> None:
        # Of the tables, as a server tells it; `rows_read` counts the answer. A stream tells what is new.
        self._read[0] += result.storage_rows_read()
        self._read[1] += result.storage_bytes_read()
        self._elapsed += result.elapsed()


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
