"""A server that fails on purpose, in ways that a sound inference server cannot be made to show."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]


class FaultServer:
    """Answers the n-th call with the n-th handler, the last one for ever. `bodies` keeps what came."""

    def __init__(self, *handlers: Handler) -> None:
        self._handlers = handlers
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.url = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FaultServer]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else {}
        handler = self._handlers[min(len(self.bodies), len(self._handlers) - 1)]
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await handler(request, body)
        finally:
            self.in_flight -= 1


def chunk(text: str, finish: str | None = None, logprob: float | None = None) -> bytes:
    """One event of a chat stream; with `logprob`, its text is one token."""
    choice: dict[str, Any] = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    if logprob is not None:
        entry = {"token": text, "logprob": logprob, "bytes": list(text.encode()), "top_logprobs": []}
        choice["logprobs"] = {"content": [entry]}
    return f"data: {json.dumps({'choices': [choice]})}\n\n".encode()


GOOD_STREAM = (chunk("Hel"), chunk("lo", "stop"), b"data: [DONE]\n\n")


def streams(*pieces: bytes | float, cut: bool = False, label: str = "text/event-stream") -> Handler:
    """Send pieces; a number is a pause in seconds. `cut` drops the connection at the end."""

    async def handler(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": label})
        await response.prepare(request)
        for piece in pieces:
            if isinstance(piece, bytes):
                await response.write(piece)
            else:
                await asyncio.sleep(piece)
        if cut and request.transport is not None:
            request.transport.abort()
        return response

    return handler


def says(status: int, body: Any = None, **headers: str) -> Handler:
    async def handler(request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return web.json_response(body, status=status, headers=named)

    return handler


def drops() -> Handler:
    async def handler(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    return handler


def hangs() -> Handler:
    async def handler(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    return handler
