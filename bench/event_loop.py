"""Does comparing slow replay down? Run: python -m bench.event_loop [seconds]

A server in a process of its own answers after 20 ms. One event loop asks it without pause, first alone, then
while the stage that the pipeline uses compares pairs (200 tokens a side, top-20, texts encoded) as fast as it
can. It prints the latency that the endpoint's client sees and how late the loop's own timers come.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import time
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection

import numpy as np

from bench.compare import differing, read, settings, wires_of, with_texts
from compare.compare_stage import CompareStage
from compare.comparison import compare_pairs
from compare.metrics.embedding import TextEncoder
from ingest.endpoint import Endpoint
from ingest.pair import ResponsePair
from ingest.settings import EndpointSettings

ANSWER_S = 0.02
CALLERS = 4
TIMER_S = 0.005
_BODY = b'{"choices": [{"index": 0, "message": {"content": "yes"}, "finish_reason": "stop"}]}'


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(ANSWER_S)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(_BODY)))
        self.end_headers()
        self.wfile.write(_BODY)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def serve(port: Connection) -> None:
    """Serve until the parent ends this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    port.send(server.server_port)
    server.serve_forever()


async def measure(endpoint: Endpoint, seconds: float) -> tuple[list[float], list[float]]:
    """Return the milliseconds of each call, and by how many milliseconds each timer was late."""
    ends = time.monotonic() + seconds
    calls: list[float] = []
    late: list[float] = []

    async def call() -> None:
        while time.monotonic() < ends:
            began = time.monotonic()
            await endpoint.ask({"messages": [], "stream": False}, "/v1/chat/completions")
            calls.append((time.monotonic() - began) * 1000.0)

    async def tick() -> None:
        while time.monotonic() < ends:
            began = time.monotonic()
            await asyncio.sleep(TIMER_S)
            late.append((time.monotonic() - began - TIMER_S) * 1000.0)

    await asyncio.gather(*(call() for _ in range(CALLERS)), tick())
    return calls, late


async def compare_without_pause(stage: CompareStage, pairs: Sequence[ResponsePair], done: list[int]) -> None:
    while True:
        await stage.compare(pairs)
        done[0] += len(pairs)


async def run(url: str, seconds: float) -> None:
    all_settings = settings()
    pairs = [read(*wire) for wire in wires_of(32)]
    pairs = [with_texts(pair, *differing(pair, number)) for number, pair in enumerate(pairs)]
    encoder = TextEncoder(all_settings.compare.embedding_model)
    compare_pairs(pairs[:2], encoder, all_settings)  # loads the encoder
    endpoint = Endpoint("bench", EndpointSettings(url=url, max_in_flight=CALLERS))
    await endpoint.start()
    print(f"{'':<24}{'calls/s':>8}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}{'timer late p99 ms':>20}")
    alone = await measure(endpoint, seconds)
    show("alone", alone, seconds)
    for name, used in (("beside metrics", None), ("beside all, encoder too", encoder)):
        stage = CompareStage(partial(compare_pairs, encoder=used, settings=all_settings))
        done = [0]
        tasks = [asyncio.create_task(stage.run())]
        tasks += [asyncio.create_task(compare_without_pause(stage, pairs[n::4], done)) for n in range(4)]
        seen = await measure(endpoint, seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await stage.close()
        show(f"{name}", seen, seconds)
        ratio = np.quantile(seen[0], 0.5) / np.quantile(alone[0], 0.5)
        print(
            f"  {done[0] / seconds:.0f} pairs/s compared meanwhile; median latency {ratio:.2f} of that alone"
        )
    await endpoint.close()


def show(name: str, seen: tuple[list[float], list[float]], seconds: float) -> None:
    p50, p95, p99 = np.quantile(seen[0], [0.5, 0.95, 0.99])
    timer = np.quantile(seen[1], 0.99)
    figures = f"{len(seen[0]) / seconds:>8.0f}{p50:>9.1f}{p95:>9.1f}{p99:>9.1f}{timer:>20.1f}"
    print(f"{name:<24}{figures}", flush=True)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    try:
        asyncio.run(run(f"http://127.0.0.1:{ours.recv()}", seconds))
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
