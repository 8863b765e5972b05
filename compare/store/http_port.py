"""The owner's loopback HTTP port: the ClickHouse HTTP protocol in front of the embedded engine.

Each request runs on an engine handle of its own, so settings, database and read-only mode of one
client never reach another. Sessions are therefore not kept.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from compare.store.port_answer import Runner, content_type, error_answer
from compare.store.port_auth import Tokens
from compare.store.port_errors import Refused
from compare.store.port_limits import PortLimits
from compare.store.port_query import PortQuery
from compare.store.port_request import PortRequest, read_request
from ingest.errors import FatalError

_START_SECONDS = 15.0


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
        self._tokens = Tokens(writer_token, reader_token)
        self._limits = limits or PortLimits()
        self._runner = Runner(self._limits)
        self._socket = socket.create_server(("127.0.0.1", 0))
        # Inherited by each connection. Else the second piece of an answer waits 40 ms for the client's ACK:
        # asyncio sets it only on sockets that were made with the protocol's number.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        app = Starlette(
            routes=[
                Route("/ping", self._ok, methods=["GET", "HEAD"]),
                Route("/replicas_status", self._ok, methods=["GET", "HEAD"]),
                Route("/", self._answer, methods=["GET", "HEAD", "POST"]),
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
        logging.getLogger("uvicorn.error").addFilter(_is_not_on_purpose)
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
        """Answer what is running (at most 5 seconds), cancel what still reads, wait for what writes."""
        self._server.should_exit = True
        self._thread.join()
        self._runner.close()
        self._socket.close()

    async def _ok(self, request: Request) -> Response:
        return PlainTextResponse("Ok.\n")

    async def _answer(self, request: Request) -> Response:
        if request.method != "POST" and not request.query_params:
            return PlainTextResponse("Ok.\n")
        query_id = request.query_params.get("query_id") or str(uuid.uuid4())
        try:
            is_writer = self._tokens.is_writer(request)
            limit = self._limits.body_bytes(is_writer=is_writer)
            raw = await _body(request, limit)
            read = await self._runner.read(self._read, request, raw, is_writer, limit)
            query_id = read.query_id
            query = PortQuery(self._connect, read, self._limits)
            headers = {
                "X-ClickHouse-Query-Id": query_id,
                "X-ClickHouse-Server-Display-Name": "gnomon",
                "X-ClickHouse-Timezone": "UTC",
                "Content-Type": content_type(read.format),
            }
            return await self._runner.run(request, read, query, headers)
        except Refused as refused:
            return error_answer(refused, query_id)
        except asyncio.CancelledError:
            return error_answer(Refused(236, "ABORTED", "the store's owner is stopping"), query_id)

    @staticmethod
    def _read(request: Request, raw: bytes, is_writer: bool, limit: int) -> PortRequest:
        return read_request(
            request.method,
            dict(request.query_params),
            dict(request.headers),
            raw,
            is_writer=is_writer,
            body_limit=limit,
        )


async def _body(request: Request, limit: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            raise Refused(229, "QUERY_IS_TOO_LARGE", f"the body is over {limit} bytes")
        await asyncio.sleep(0)
    return bytes(body)


def _is_not_on_purpose(record: logging.LogRecord) -> bool:
    """An answer that fails midway is cut: that is how the client learns of it. So is what a stop leaves."""
    said = record.getMessage()
    return "without completing response" not in said and "graceful shutdown exceeded" not in said
