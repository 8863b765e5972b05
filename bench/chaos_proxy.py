"""A proxy between one service and the engine that knows what passes, and strikes at a chosen moment.

It speaks HTTP: each request is taken whole, forwarded, and its reply taken whole before it is passed on.
A request goes on to the engine though its client has died, as a statement does that a server has begun.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qs, urlsplit

import aiohttp
import msgspec
from aiohttp import web
from yarl import URL

T = TypeVar("T")

Moment = Literal["before", "during", "after", "hold"]
"""When to strike: before the request is forwarded (it never is), while the engine is at it, once its reply
has come (which is not passed on), or then, passing it on when told to."""

_DURING_S = 0.003
_WHOLE = 2_000
_NOT_FORWARDED = frozenset({"host", "content-length", "transfer-encoding", "connection", "keep-alive"})


class Seen(msgspec.Struct, frozen=True):
    """One request as the proxy sees it. `table` is that of an insert of a batch, else empty."""

    query_id: str
    table: str
    text: str


class Trap(msgspec.Struct):
    """Strikes once, at the first request that it is for.

    `loses` replies are lost before that: the connection is closed in their place, and the trap is then for
    the same request tried again.
    """

    is_for: Callable[[Seen], bool]
    moment: Moment
    loses: int = 0


class ProxyLoop:
    """The event loop of all proxies, on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def close(self) -> None:
        """End the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Proxy:
    """One port before the engine. `strike` is called on the proxies' thread when a trap springs."""

    def __init__(self, loop: ProxyLoop, engine_url: str, strike: Callable[[], None]) -> None:
        self._loop = loop
        self._engine = engine_url
        self._strike = strike
        self._trap: Trap | None = None
        self._lock = threading.Lock()
        self._released: asyncio.Event | None = None
        self.sprung = threading.Event()
        self.inserts = 0
        """Batches' inserts into `pairs` whose reply has come."""
        self.url = loop.run(self._start())

    def arm(self, trap: Trap | None) -> None:
        """Set the trap, in place of any other; None takes it away."""
        self.sprung.clear()
        self._set(trap)

    def release(self) -> None:
        """Pass on the reply that a trap with the moment `hold` keeps."""

        async def release() -> None:
            if self._released is not None:
                self._released.set()

        self._loop.run(release())

    def close(self) -> None:
        """Close the port and every connection."""
        self._loop.run(self._close())

    async def _start(self) -> str:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.5, auto_decompress=False, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _close(self) -> None:
        if self._released is not None:
            self._released.set()
        await self._runner.cleanup()
        await self._session.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            body = await request.read()
        except ConnectionError:
            # Killed in the middle of its request: nothing of it reaches the engine.
            return _cut(request)
        seen = seen_of(request.raw_path, body)
        trap = self._take(seen)
        loses = trap is not None and trap.loses > 0
        moment = None if trap is None or loses else trap.moment
        if moment == "before":
            self._spring()
            return _cut(request)
        forwarding = asyncio.ensure_future(self._forward(request, body))
        if moment == "during":
            await asyncio.sleep(_DURING_S)
            self._spring()
            await asyncio.wait([forwarding])
            return _cut(request)
        try:
            reply = await forwarding
        except aiohttp.ClientError:
            return _cut(request)
        if seen.table == "pairs":
            self.inserts += 1
        if trap is not None and loses:
            self._set(Trap(lambda again: again.query_id == seen.query_id, trap.moment, trap.loses - 1))
            return _cut(request)
        if moment == "hold":
            self._released = asyncio.Event()
            self._spring()
            await self._released.wait()
        elif moment == "after":
            self._spring()
            return _cut(request)
        return reply

    def _take(self, seen: Seen) -> Trap | None:
        with self._lock:
            trap = self._trap
            if trap is None or not trap.is_for(seen):
                return None
            self._trap = None
            return trap

    def _set(self, trap: Trap | None) -> None:
        with self._lock:
            self._trap = trap

    def _spring(self) -> None:
        # Said first: whoever waits for it must not see the process end before.
        self.sprung.set()
        self._strike()

    async def _forward(self, request: web.Request, body: bytes) -> web.Response:
        headers = {n: v for n, v in request.headers.items() if n.lower() not in _NOT_FORWARDED}
        url = URL(self._engine + request.raw_path, encoded=True)
        async with self._session.request(request.method, url, data=body, headers=headers) as reply:
            content = await reply.read()
            kept = {n: v for n, v in reply.headers.items() if n.lower() not in _NOT_FORWARDED}
            return web.Response(status=reply.status, body=content, headers=kept)


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


_ID = re.compile(r"^gnomon/[^/]*/[^/]*/[^/]*/(\w+)/\w+$")


def seen_of(path: str, body: bytes) -> Seen:
    """What the request asks for: its query id, and its SQL wherever it stands (URL or body)."""
    asked = parse_qs(urlsplit(path).query)
    query_id = asked.get("query_id", [""])[0]
    named = _ID.match(query_id)
    text = asked.get("query", [""])[0] + body[:_WHOLE].decode("utf-8", "replace")
    return Seen(query_id, named[1] if named else "", text)
