"""One way to the store: a ClickHouse server, the embedded engine, or its owner over loopback."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import clickhouse_connect
import msgspec
from clickhouse_connect.driver.exceptions import ClickHouseError

from compare.store import embedded, errors
from compare.store.answer import Result, cost_of, first_rows
from compare.store.connection import Connection
from compare.store.interrupt import Interrupt
from compare.store.lockfile import Owner
from compare.store.native_block import native_parts
from compare.store.native_columns import Column, column_length
from compare.store.reader_rules import why_not_read_only
from compare.store.sql_text import first_word, format_at_end
from ingest.errors import FatalError, GnomonError, RetryError, SettingsError
from ingest.settings import StoreSettings

Role = Literal["owner", "reader", "any"]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_LIMITS = {
    "limit",
    "max_block_size",
    "max_execution_time",
    "max_memory_usage",
    "max_result_rows",
    "max_rows_to_read",
    "use_skip_indexes_if_final_exact_mode",
}
_CONNECT_SECONDS = 5
_ANSWER_SECONDS = 330


class Store:
    """A connection to one database. Calls on it are serialised; open one a thread for speed.

    Every method raises RetryError if the store is away or overloaded, and StoreQueryError (a
    FatalError with ClickHouse's `code`) if it refuses for good. After a RetryError the next call
    connects anew: a process that owned an embedded folder may have ended, and left it free.
    """

    def __init__(
        self, connect: Callable[[], Connection], *, database: str, is_read_only: bool = False
    ) -> None:
        self._connect = connect
        self._is_read_only = is_read_only
        self._column_types: dict[str, dict[str, str]] = {}
        self._connecting = threading.Lock()
        self._connection: Connection | None = None
        self.database = database
        self.where = self._connected().where

    def _connected(self) -> Connection:
        with self._connecting:
            if self._connection is None:
                connection = self._connect()
                # Set only now: at connection the database may not exist yet.
                connection.client.database = self.database
                self._connection = connection
                self.where = connection.where
            return self._connection

    @contextmanager
    def _lost_if_away(self) -> Iterator[None]:
        try:
            yield
        except RetryError:
            self.close()
            raise

    def query(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Result:
        """Run one statement that answers with rows. `parameters` are bound by the server:
        `{name:Type}` in the SQL. `settings` are ClickHouse's, such as limits of this query.
        """
        self._guard_rows(sql)
        with self._lost_if_away():
            client = self._connected().client
            try:
                result = client.query(sql, parameters=dict(parameters or {}), settings=dict(settings or {}))
                # Read here: all but the first block of an answer is still on its way.
                rows = [tuple(row) for row in result.result_rows]
                columns = tuple(result.column_names)
                if not columns and first_word(sql) in ("SELECT", "WITH"):
                    columns = self._columns_of(sql, parameters)
            except ClickHouseError as error:
                raise errors.of_query(error, self.where, self.database) from error
            except RuntimeError as error:
                raise FatalError(f"store {self.where}: {errors.one_line(error)}") from error
        return Result(columns, rows, cost_of(result.summary))

    def query_some(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        *,
        rows: int,
        size: int,
    ) -> Result:
        """As `query`, but the first `rows` rows and about `size` bytes only, however long the answer is.

        The store is not read on after them. A server may still make a block larger than `size`: bound that
        with `max_block_size`.
        """
        self._guard_rows(sql)
        with self._lost_if_away():
            client = self._connected().client
            try:
                stream = client.query_row_block_stream(
                    sql, parameters=dict(parameters or {}), settings=dict(settings or {})
                )
                with stream:
                    kept, is_cut = first_rows(stream, rows, size)
                    columns = tuple(getattr(stream.source, "column_names", ()))
                    cost = cost_of(getattr(stream.source, "summary", {}))
            except ClickHouseError as error:
                raise errors.of_query(error, self.where, self.database) from error
            except RuntimeError as error:
                raise FatalError(f"store {self.where}: {errors.one_line(error)}") from error
        return Result(columns, kept, cost, is_cut)

    def command(
        self, sql: str, parameters: Mapping[str, Any] | None = None, *, use_database: bool = True
    ) -> None:
        """Run one statement that answers with nothing, such as DDL."""
        self._guard(sql)
        with self._lost_if_away():
            client = self._connected().client
            try:
                client.command(sql, parameters=dict(parameters or {}), use_database=use_database)
            except ClickHouseError as error:
                raise errors.of_query(error, self.where, self.database) from error

    def insert(
        self,
        table: str,
        column_names: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        dedup_token: str | None = None,
        query_id: str | None = None,
    ) -> None:
        """Insert a few rows of Python values; see `insert_columns`."""
        try:
            columns = dict(zip(column_names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
        except (TypeError, ValueError) as error:
            raise errors.of_insert(error, table, self.where) from error
        self.insert_columns(table, columns, dedup_token=dedup_token, query_id=query_id)

    def insert_columns(
        self,
        table: str,
        columns: Mapping[str, Column],
        *,
        dedup_token: str | None = None,
        query_id: str | None = None,
    ) -> None:
        """Insert columns (see `native_block`) in one block. The same `dedup_token` twice stores them once.

        A row whose key is in the block twice is stored twice: views read FINAL. Raises
        DeadLetterError (`store_refused`) if a row can never be stored, RetryError if the insert may
        succeed later, FatalError if table, column or permission is missing.
        """
        rows = max(map(column_length, columns.values()), default=0)
        if not rows:
            return
        types = self._known_types(table, list(columns))
        settings = _insert_settings(dedup_token, query_id)
        # As one block whatever its size: the token is of the whole.
        settings["input_format_parallel_parsing"] = 0
        settings["max_insert_block_size"] = rows
        # Nothing is collapsed on the way in, which takes half of the time.
        settings["optimize_on_insert"] = 0
        with self._lost_if_away():
            connection = self._connected()
            try:
                parts = native_parts(columns, types, rows)
            except errors.ROW_ERRORS as error:
                raise errors.of_insert(error, table, self.where) from error
            try:
                connection.client.raw_insert(
                    table,
                    list(columns),
                    connection.body(parts),
                    settings=settings,
                    fmt="Native",
                    compression="lz4" if connection.place == "far" else None,
                )
            except (ClickHouseError, OSError) as error:
                # Nothing wider: a defect of the way there must not cost the rows.
                raise errors.of_insert(error, table, self.where) from error

    def another(self) -> Store:
        """A second connection to the same database, for calls that shall not wait for this one's."""
        return Store(self._connect, database=self.database, is_read_only=self._is_read_only)

    def interrupt(self) -> None:
        """From another thread: break off the call that is under way, which then raises RetryError.

        The next call connects anew. Without effect on a store that this very process owns (see `open_store`).
        """
        connection = self._connection
        if connection is not None:
            connection.interrupt()

    def close(self) -> None:
        """Close the connection; the last store of an embedded engine closes the engine."""
        with self._connecting:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _guard_rows(self, sql: str) -> None:
        self._guard(sql)
        if format_at_end(sql):
            raise FatalError(f"store {self.where}: leave FORMAT out of the query, its result is read as rows")

    def _guard(self, sql: str) -> None:
        reason = why_not_read_only(sql) if self._is_read_only else None
        if reason:
            raise errors.StoreQueryError(
                f"store {self.where}: {reason.replace('token', 'connection')}", code=164
            )

    def _known_types(self, table: str, column_names: Sequence[str]) -> dict[str, str]:
        types = self._types_of(table)
        unknown = [name for name in column_names if name not in types]
        if unknown:
            raise FatalError(
                f"store {self.where}: table {table} lacks {', '.join(unknown)}: run `gnomon migrate`"
            )
        return types

    def _types_of(self, table: str) -> dict[str, str]:
        """Column types, asked for once: a running service never sees its tables change."""
        if table not in self._column_types:
            described = self.query(f"DESCRIBE TABLE `{table}`")
            self._column_types[table] = {str(row[0]): str(row[1]) for row in described.rows}
        return self._column_types[table]

    def _columns_of(self, sql: str, parameters: Mapping[str, Any] | None) -> tuple[str, ...]:
        """The columns of an empty result, which the embedded client leaves out."""
        described = self._connected().client.query(
            f"DESCRIBE TABLE ({sql.rstrip().rstrip(';')}\n)", parameters=dict(parameters or {})
        )
        return tuple(str(row[0]) for row in described.result_rows)


def _insert_settings(dedup_token: str | None, query_id: str | None) -> dict[str, Any]:
    # On a cluster an insert has succeeded when the shards have the rows, not when they are queued.
    settings: dict[str, Any] = {"async_insert": 0, "insert_distributed_sync": 1}
    if dedup_token is not None:
        settings["insert_deduplication_token"] = dedup_token
    if query_id is not None:
        settings["query_id"] = query_id
    return settings


def open_store(settings: StoreSettings, *, role: Role, over_port: bool = False) -> Store:
    """Connect to the store named by the settings.

    `owner` must own an embedded folder; `reader` may only read; `any` takes what is there. For
    `chdb:///folder`: a live owner is asked over its port, a free folder is opened (and served); with
    `over_port` it is asked over the port even then, so that a query can be interrupted.
    Raises RetryError if a server is away, FatalError on a wrong password, a folder that cannot be
    written, or (owner) a folder that another process owns.
    """
    # Its own messages repeat, with a stack trace, the error that we raise in one line.
    logging.getLogger("clickhouse_connect").setLevel(logging.CRITICAL)
    is_read_only = role == "reader"
    if settings.url.startswith("chdb://"):
        return Store(
            partial(_connect_embedded, settings, role, over_port),
            database=settings.database,
            is_read_only=is_read_only,
        )
    connect = partial(
        connect_http,
        settings.url,
        settings.username,
        settings.password or "",
        settings=settings,
        where=settings.url,
    )
    return Store(connect, database=settings.database, is_read_only=is_read_only)


def _connect_embedded(settings: StoreSettings, role: Role, over_port: bool) -> Connection:
    folder = Path(settings.url.removeprefix("chdb://"))
    opened = embedded.open_folder(folder, role=role, max_memory_bytes=settings.max_memory_bytes)
    if isinstance(opened, Owner):
        return _connect_to_owner(opened, settings, role, f"{settings.url} (through process {opened.pid})")
    if over_port:
        try:
            connection = _connect_to_owner(opened.owner, settings, role, settings.url)
        except GnomonError:
            embedded.release(opened)
            raise

        def close() -> None:
            connection.on_close()
            embedded.release(opened)

        return msgspec.structs.replace(connection, on_close=close)
    try:
        client = clickhouse_connect.get_client(interface="chdb", path=str(opened.folder), tz_mode="aware")
        if role == "reader":
            client.command("SET readonly = 1")
    except ClickHouseError as error:
        embedded.release(opened)
        raise FatalError(f"store {settings.url}: {errors.one_line(error)}") from error
    return Connection(client, settings.url, partial(embedded.release, opened))


def _connect_to_owner(owner: Owner, settings: StoreSettings, role: Role, where: str) -> Connection:
    token = owner.reader_token if role == "reader" else owner.writer_token
    return connect_http(owner.url, "default", token, settings=settings, where=where)


def connect_http(
    url: str, username: str, password: str, *, settings: StoreSettings, where: str
) -> Connection:
    """Connect over HTTP, to a server or to an owner's port. Raises as `open_store` does."""
    if "@" in url:
        raise SettingsError(
            "store.url holds a user or password: set store.username and GNOMON_STORE_PASSWORD"
        )
    address = urlsplit(url)
    is_tls = address.scheme == "https"
    try:
        port = address.port or (8443 if is_tls else 8123)
    except ValueError as error:
        raise SettingsError(f"store.url {url}: the port must be a number from 1 to 65535") from error
    interrupt = Interrupt()
    pool = interrupt.pool(
        address.scheme,
        address.hostname or "",
        port,
        verify=settings.verify_tls,
        ca_cert=settings.tls_ca_file,
    )
    try:
        client = clickhouse_connect.get_client(
            pool_mgr=pool,
            interface=address.scheme,
            host=address.hostname or "",
            port=port,
            username=username,
            password=password,
            verify=settings.verify_tls,
            ca_cert=settings.tls_ca_file,
            # A session would forbid two queries at once; nothing here needs one.
            autogenerate_session_id=False,
            connect_timeout=_CONNECT_SECONDS,
            send_receive_timeout=_ANSWER_SECONDS,
            tz_mode="aware",
        )
    except ClickHouseError as error:
        pool.clear()
        raise errors.of_query(error, where) from error
    # The client holds these back where system.settings calls them read-only; the port still takes them.
    client.valid_transport_settings = client.valid_transport_settings | _LIMITS
    place: Literal["loopback", "far"] = "loopback" if address.hostname in _LOOPBACK else "far"
    return Connection(client, where, pool.clear, interrupt.now, place)
