"""A read-only query whose rows arrive block by block: bounded memory, and cancelled when closed.

An embedded folder is asked over its owner's port even by the owner's own process: a query in the
engine cannot be interrupted from Python, a read from a socket can, and the port cancels what nobody reads.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from compare.store import embedded, errors
from compare.store.client import connect_http
from compare.store.lockfile import Owner
from compare.store.reader_rules import why_not_read_only
from compare.store.sql_text import format_at_end
from ingest.errors import FatalError
from ingest.settings import StoreSettings

_MAY_HOLD_BYTES = frozenset({bytes, list, tuple, dict})


class RowStream:
    """Rows of one query, a list of tuples at a time.

    Times are aware UTC datetimes; a String is str, or bytes if it is not UTF-8. Iterating raises
    RetryError if the store goes away and StoreQueryError if the query fails.
    """

    def __init__(self, column_names: tuple[str, ...], blocks: Iterator[Any], where: str) -> None:
        self.column_names = column_names
        self._blocks = blocks
        self._where = where

    def __iter__(self) -> Iterator[list[tuple[Any, ...]]]:
        while True:
            with _known_errors(self._where):
                block = next(self._blocks, None)
            if block is None:
                return
            yield [
                tuple([_text_if_utf8(cell) if type(cell) in _MAY_HOLD_BYTES else cell for cell in row])
                for row in block
            ]


@contextmanager
def stream_rows(
    settings: StoreSettings,
    sql: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    seconds: float | None = None,
) -> Iterator[RowStream]:
    """Run one reading statement; leaving the block early cancels it.

    `seconds` limits its time in the store. Raises what `open_store` raises, and FatalError for a statement
    that does not only read, or that names a FORMAT.
    """
    logging.getLogger("clickhouse_connect").setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        client, where = _connected(settings, stack)
        if reason := why_not_read_only(sql):
            raise errors.StoreQueryError(f"store {where}: {reason.replace('token', 'connection')}", code=164)
        if format_at_end(sql):
            raise FatalError(f"store {where}: leave FORMAT out of the query, its result is read as rows")
        client.database = settings.database
        if seconds is not None:
            # Not as a query's setting: the client refuses what a read-only store may still allow.
            client.params["max_execution_time"] = f"{seconds:g}"  # type: ignore[attr-defined]
        with _known_errors(where, settings.database):
            context = client.query_row_block_stream(
                sql, parameters=dict(parameters or {}), query_formats={"String": "bytes"}
            )
            blocks = stack.enter_context(context)
        yield RowStream(tuple(getattr(context.source, "column_names", ())), iter(blocks), where)


def _connected(settings: StoreSettings, stack: ExitStack) -> tuple[Client, str]:
    if not settings.url.startswith("chdb://"):
        connection = connect_http(
            settings.url, settings.username, settings.password or "", settings=settings, where=settings.url
        )
    else:
        folder = Path(settings.url.removeprefix("chdb://"))
        opened = embedded.open_folder(folder, role="reader", max_memory_bytes=settings.max_memory_bytes)
        if not isinstance(opened, Owner):
            stack.callback(embedded.release, opened)
        owner = opened if isinstance(opened, Owner) else opened.owner
        connection = connect_http(
            owner.url, "default", owner.reader_token, settings=settings, where=settings.url
        )
    stack.callback(connection.close)
    return connection.client, connection.where


@contextmanager
def _known_errors(where: str, database: str | None = None) -> Iterator[None]:
    try:
        yield
    except ClickHouseError as error:
        raise errors.of_query(error, where, database) from error


def _text_if_utf8(cell: Any) -> Any:
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return cell
    if isinstance(cell, list):
        return [_text_if_utf8(item) for item in cell]
    if isinstance(cell, tuple):
        return tuple(_text_if_utf8(item) for item in cell)
    if isinstance(cell, dict):
        return {_text_if_utf8(key): _text_if_utf8(value) for key, value in cell.items()}
    return cell
