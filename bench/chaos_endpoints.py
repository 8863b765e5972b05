"""The two model servers of the chaos run, in a process of their own: quick, streaming, and sometimes faulty.

Each answers chat completions with the same few tokens and their alternatives. A share of the calls, chosen by
a seeded draw, meets one of seven faults. Every call is a line of a journal: when, which endpoint, which
record, which service process (header `X-Run`), and how it ended.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from pathlib import Path
from typing import IO, Any

import msgspec
from aiohttp import web

from compare.demo.child import ChildProcess

FAULTS = ("500", "429", "refused", "hang", "cut", "garbage", "drip")
WORDS = ("All", " parts", " answer", " as", " they", " should", ".")
START_SECONDS = 30.0
_REFUSES_S = 0.1
_HANGS_S = 30.0

SERVE = "import sys; from bench.chaos_endpoints import serve; serve(*sys.argv[1:])"


class Call(msgspec.Struct, frozen=True):
    """One line of the journal. `ended` is `ok`, the fault's name, or `broken` if the client went away.

    `at` is the time at which the call came, in seconds since the epoch.
    """

    at: float
    endpoint: str
    record: str
    run: str
    ended: str


class Endpoints:
    """The running process: its two ports, and the calls it has seen."""

    def __init__(self, folder: Path, *, seed: int, faulty_share: float, answer_ms: float) -> None:
        self._journal = folder / "calls.jsonl"
        ports = folder / "ports.json"
        arguments = [str(self._journal), str(ports), str(seed), str(faulty_share), str(answer_ms)]
        self.child = ChildProcess([sys.executable, "-c", SERVE, *arguments], folder / "endpoints.log")
        deadline = time.monotonic() + START_SECONDS
        while not ports.exists():
            if time.monotonic() > deadline or self.child.exit_code is not None:
                self.child.stop()
                raise RuntimeError(f"the endpoints did not start: {self.child.output_tail()}")
            time.sleep(0.05)
        self.ports: dict[str, int] = json.loads(ports.read_text())

    def calls(self) -> list[Call]:
        """Every call that has ended so far, in order of its end."""
        lines = self._journal.read_bytes().split(b"\n")[:-1]
        return [msgspec.json.decode(line, type=Call) for line in lines]


def serve(journal: str, ports: str, seed: str, faulty_share: str, answer_ms: str) -> None:
    """Serve until SIGTERM. Runs in the child process."""
    asyncio.run(_serve(Path(journal), Path(ports), int(seed), float(faulty_share), float(answer_ms)))


async def _serve(journal: Path, ports: Path, seed: int, faulty_share: float, answer_ms: float) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with journal.open("wb", buffering=0) as lines:
        servers = [_Server(name, lines, seed, faulty_share, answer_ms) for name in ("ref", "cand")]
        for server in servers:
            await server.start()
        whole = ports.with_suffix(".part")
        whole.write_text(json.dumps({server.name: server.port for server in servers}))
        whole.rename(ports)
        await stop.wait()
        for server in servers:
            await server.close()


class _Server:
    """One endpoint."""

    def __init__(
        self, name: str, journal: IO[bytes], seed: int, faulty_share: float, answer_ms: float
    ) -> None:
        self.name = name
        self.port = 0
        self._journal = journal
        self._draw = random.Random(f"{seed} {name}")
        self._faulty_share = faulty_share
        self._answer_s = answer_ms / 1000
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.5)
        self._site: web.TCPSite | None = None

    async def start(self) -> None:
        await self._runner.setup()
        await self._listen()

    async def close(self) -> None:
        await self._runner.cleanup()

    async def _listen(self) -> None:
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await self._site.start()
        self.port = self._runner.addresses[0][1]

    async def _refuse(self) -> None:
        """Take no connections for a moment: those who come meanwhile are refused by the kernel."""
        site, self._site = self._site, None
        if site is not None:
            await site.stop()
            await asyncio.sleep(_REFUSES_S)
            await self._listen()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        at = time.time()
        body = json.loads(await request.read())
        fault = self._draw.choice(FAULTS) if self._draw.random() < self._faulty_share else ""
        ended = "broken"
        try:
            response = await self._answer_with(request, fault)
            ended = fault or "ok"
        except ConnectionResetError:
            response = web.Response(status=500)
        finally:
            record = body["messages"][-1]["content"]
            run = request.headers.get("X-Run", "")
            self._journal.write(msgspec.json.encode(Call(at, self.name, record, run, ended)) + b"\n")
        return response

    async def _answer_with(self, request: web.Request, fault: str) -> web.StreamResponse:
        await asyncio.sleep(self._answer_s)
        if fault == "500":
            return web.json_response({"error": {"message": "CUDA error: out of memory"}}, status=500)
        if fault == "429":
            words = {"error": {"message": "too many requests"}}
            return web.json_response(words, status=429, headers={"Retry-After": "1"})
        if fault == "garbage":
            return web.Response(body=bytes(range(256)) * 4, content_type="text/event-stream")
        if fault == "refused":
            _abort(request)
            await self._refuse()
            return web.Response(status=500)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if fault == "hang":
            await asyncio.sleep(_HANGS_S)
        for number, word in enumerate(WORDS):
            if fault == "cut" and number == 3:
                _abort(request)
                return response
            if fault == "drip":
                await asyncio.sleep(0.2)
            await response.write(_event(_piece(word)))
        usage = {"prompt_tokens": 9, "completion_tokens": len(WORDS), "total_tokens": 9 + len(WORDS)}
        last = {"index": 0, "delta": {}, "finish_reason": "stop"}
        await response.write(_event({"choices": [last]}) + _event({"choices": [], "usage": usage}))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _piece(word: str) -> dict[str, Any]:
    def entry(text: str, logprob: float) -> dict[str, Any]:
        return {"token": text, "bytes": list(text.encode()), "logprob": logprob}

    top = [entry(word, -0.11), entry(" other", -2.5), entry(" third", -4.0)]
    listed = {**entry(word, -0.11), "top_logprobs": top}
    choice = {"index": 0, "delta": {"content": word}, "logprobs": {"content": [listed]}}
    return {"choices": [{**choice, "finish_reason": None}]}


def _event(value: dict[str, Any]) -> bytes:
    whole = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", **value}
    return b"data: " + json.dumps(whole).encode() + b"\n\n"
