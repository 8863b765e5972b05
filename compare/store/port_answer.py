"""Running a statement for an HTTP client: slots, streaming, and clients that leave."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from compare.store.body_encoding import BLOCKS, Encoder, encoder_of
from compare.store.port_errors import Refused, exception_block, new_tag
from compare.store.port_limits import PortLimits
from compare.store.port_query import PortQuery
from compare.store.port_request import PortRequest

T = TypeVar("T")

_CANCEL_AGAIN_SECONDS = 0.25
_CONTENT_TYPES = {
    "tabseparated": "text/tab-separated-values; charset=UTF-8",
    "tsv": "text/tab-separated-values; charset=UTF-8",
    "csv": "text/csv; charset=UTF-8; header=absent",
    "csvwithnames": "text/csv; charset=UTF-8; header=present",
    "json": "application/json; charset=UTF-8",
    "jsoncompact": "application/json; charset=UTF-8",
    "jsoneachrow": "application/x-ndjson; charset=UTF-8",
    "native": "application/octet-stream",
    "rowbinary": "application/octet-stream",
    "rowbinarywithnamesandtypes": "application/octet-stream",
    "parquet": "application/octet-stream",
}


def content_type(format_name: str) -> str:
    """The Content-Type of an answer in the format."""
    return _CONTENT_TYPES.get(format_name.lower(), "text/plain; charset=UTF-8")


def error_answer(refused: Refused, query_id: str) -> Response:
    """An error before the answer began: text, status and code as a server sends them."""
    headers = {
        "X-ClickHouse-Exception-Code": str(refused.code),
        "X-ClickHouse-Query-Id": query_id,
        "X-ClickHouse-Server-Display-Name": "gnomon",
    }
    return PlainTextResponse(refused.text + "\n", status_code=refused.status, headers=headers)


class Runner:
    """Slots and threads of one port; its coroutines belong to the server's loop."""

    def __init__(self, limits: PortLimits) -> None:
        self._limits = limits
        self._slots = {
            True: asyncio.Semaphore(limits.writer_queries),
            False: asyncio.Semaphore(limits.reader_queries),
        }
        self.send_seconds = limits.send_seconds
        self._waiting = 0
        # A thread for each slot, so that no reader ever waits for a thread behind another's query.
        self._threads = ThreadPoolExecutor(limits.writer_queries + limits.reader_queries, "store-query")
        self._helpers = ThreadPoolExecutor(4, "store-help")
        self._open: dict[PortQuery, bool] = {}
        """Queries whose handles are out, and whether they may be cancelled: those that only read."""

    def close(self) -> None:
        """Cancel what only reads, and wait for the rest. For after the server's loop, which has ended."""
        waiting = threading.Thread(target=self._threads.shutdown, name="store-stop")
        waiting.start()
        while waiting.is_alive():
            for query, is_reading in list(self._open.items()):
                if is_reading:
                    query.cancel()
            waiting.join(_CANCEL_AGAIN_SECONDS)
        self._helpers.shutdown()
        while self._open:
            self._open.popitem()[0].close()

    async def read(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run what is not a query (decompressing a body) off the loop."""
        return await asyncio.get_running_loop().run_in_executor(self._helpers, function, *arguments)

    async def call(self, function: Callable[[], T]) -> T:
        """Run a step of a query on a thread of its own."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    async def run(
        self,
        http: Request,
        request: PortRequest,
        query: PortQuery,
        headers: dict[str, str],
    ) -> Response:
        """The answer, whole or (once it is longer than a buffer) streamed. Raises Refused."""
        slot = self._slots[request.is_writer]
        await self._acquire(slot, is_writer=request.is_writer)
        self._open[query] = request.is_read_only or query.is_streamed
        is_handed_on = False
        try:
            first, is_all = await self._unless_gone(http.receive, request, query, self.call(query.start))
            encoder = encoder_of(request.encoding)
            headers["X-ClickHouse-Summary"] = query.summary()
            headers["X-ClickHouse-Exception-Tag"] = new_tag()
            if request.insert is None:
                headers["X-ClickHouse-Format"] = request.format
            if request.encoding not in (None, BLOCKS):
                headers["Content-Encoding"] = str(request.encoding)
            if is_all:
                body = await self.read(lambda: encoder.piece(first) + encoder.end())
                return Response(body, headers=headers)
            is_handed_on = True
            return _Streamed(self, request, query, headers, encoder, first, slot)
        except asyncio.CancelledError:
            # The server stops, and the statement may still run: `close` ends it.
            is_handed_on = True
            raise
        finally:
            if not is_handed_on:
                await self.finish(query, slot)

    async def finish(self, query: PortQuery, slot: asyncio.Semaphore) -> None:
        """Close the query and free its slot, whatever happens to the caller meanwhile."""

        async def close() -> None:
            try:
                await self.call(query.close)
            finally:
                self._open.pop(query, None)
                slot.release()

        await asyncio.shield(asyncio.ensure_future(close()))

    async def _acquire(self, slot: asyncio.Semaphore, *, is_writer: bool) -> None:
        limits = self._limits
        maximum = limits.writer_queries if is_writer else limits.reader_queries
        message = f"Too many simultaneous queries. Maximum: {maximum}"
        if self._waiting >= limits.waiting and slot.locked() and not is_writer:
            raise Refused(202, "TOO_MANY_SIMULTANEOUS_QUERIES", message)
        self._waiting += 1
        try:
            await asyncio.wait_for(slot.acquire(), limits.queue_seconds)
        except TimeoutError as error:
            raise Refused(202, "TOO_MANY_SIMULTANEOUS_QUERIES", message) from error
        finally:
            self._waiting -= 1

    async def _unless_gone(
        self, receive: Receive, request: PortRequest, query: PortQuery, work: Coroutine[Any, Any, T]
    ) -> T:
        """Await the work. If the client of a reading query leaves first, cancel the query."""
        working = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
        if not working.done() and (request.is_read_only or query.is_streamed):
            await self._stop(query, working)
        return await working

    async def _stop(self, query: PortQuery, working: asyncio.Future[T]) -> None:
        """Cancel until the work ends: the engine may not know the query yet."""
        while not working.done():
            await self.read(query.cancel)
            await asyncio.wait({working}, timeout=_CANCEL_AGAIN_SECONDS)

    async def piece(self, http_receive: Receive, request: PortRequest, query: PortQuery) -> bytes | None:
        """The next piece of a streamed answer, None at its end."""
        return await self._unless_gone(http_receive, request, query, self.call(query.more))


async def _gone(receive: Receive) -> None:
    """Wait until the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


class _Streamed(Response):
    """An answer sent while the query runs. A failure midway is told in the body, and cuts it."""

    def __init__(
        self,
        runner: Runner,
        request: PortRequest,
        query: PortQuery,
        headers: dict[str, str],
        encoder: Encoder,
        first: bytes,
        slot: asyncio.Semaphore,
    ) -> None:
        super().__init__(b"", headers=headers)
        del self.headers["content-length"]
        self._runner = runner
        self._request = request
        self._query = query
        self._encoder = encoder
        self._first = first
        self._slot = slot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if await self._send_pieces(receive, send):
                await self._send(send, self._encoder.end(), is_last=True)
        except asyncio.CancelledError:
            # As in `Runner.run`.
            raise
        except BaseException:
            await self._runner.finish(self._query, self._slot)
            raise
        else:
            await self._runner.finish(self._query, self._slot)

    async def _send_pieces(self, receive: Receive, send: Send) -> bool:
        piece: bytes | None = self._first
        while piece is not None:
            if piece:
                data = piece
                encoded = await self._runner.read(lambda data=data: self._encoder.piece(data))
                if not await self._send(send, encoded, is_last=False):
                    return False
            try:
                piece = await self._runner.piece(receive, self._request, self._query)
            except Refused as refused:
                block = exception_block(refused, self.headers["X-ClickHouse-Exception-Tag"])
                await self._send(send, self._encoder.piece(block), is_last=False)
                return False
        return True

    async def _send(self, send: Send, data: bytes, *, is_last: bool) -> bool:
        """Whether the client took the data in time."""
        message = {"type": "http.response.body", "body": data, "more_body": not is_last}
        try:
            await asyncio.wait_for(send(message), self._runner.send_seconds)
        except TimeoutError:
            return False
        return True
