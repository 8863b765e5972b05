"""Does comparing slow replay down? Run: python -m bench.event_loop [seconds] [rounds]

A server in a process of its own answers after 20 ms. One event loop asks it without pause, first alone, then
while pairs are compared (200 tokens a side, top-20, no text seen before) as fast as it can be: in the process
that the pipeline uses, and for comparison in a thread of this one. It prints the latency that the endpoint's
client sees, how late the loop's own timers come, and the memory of this process and of the one that compares.
Of several rounds in turn each line is the one with the least median: other work on the machine only adds.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import sys
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from bench.compare import differing, read, settings, wires_of, with_texts
from compare.compare_child import Compares, ready_comparison
from compare.compare_process import CompareProcess
from compare.compare_stage import Compare, CompareStage
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


class Seen(NamedTuple):
    """One round: milliseconds of calls and of lateness, and pairs compared a second meanwhile."""

    calls: list[float]
    late: list[float]
    pairs_s: float

    @property
    def median(self) -> float:
        """Milliseconds."""
        return float(np.quantile(self.calls, 0.5))


async def compare_without_pause(stage: CompareStage, pairs: Sequence[ResponsePair], done: list[int]) -> None:
    while True:
        done[0] += len(pairs)
        # Texts that the encoder knows cost nothing.
        await stage.compare([with_texts(pair, *differing(pair, done[0])) for pair in pairs])
        done[1] += len(pairs)


async def measure_beside(
    compare: Compare, pairs: Sequence[ResponsePair], endpoint: Endpoint, seconds: float
) -> Seen:
    # Not to be given up when it closes: the next round goes on with it.
    stage = CompareStage(lambda given: compare(given))
    done = [0, 0]
    tasks = [asyncio.create_task(stage.run())]
    tasks += [asyncio.create_task(compare_without_pause(stage, pairs[n::4], done)) for n in range(4)]
    while not done[1]:
        await asyncio.sleep(TIMER_S)
    began, before = time.monotonic(), done[1]
    calls, late = await measure(endpoint, seconds)
    pairs_s = (done[1] - before) / (time.monotonic() - began)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await stage.close()
    return Seen(calls, late, pairs_s)


async def run(url: str, seconds: float, rounds: int) -> None:
    everything = settings()
    metrics = msgspec.structs.replace(
        everything, compare=msgspec.structs.replace(everything.compare, embedding_model="")
    )
    endpoint = Endpoint("bench", EndpointSettings(url=url, max_in_flight=CALLERS))
    await endpoint.start()
    best: dict[str, Seen] = {}

    pairs = [read(*wire) for wire in wires_of(32)]

    async def rounds_of(named: dict[str, Compare]) -> None:
        for _ in range(rounds):
            seen = {"alone": Seen(*await measure(endpoint, seconds), 0.0)}
            for name, compare in named.items():
                seen[name] = await measure_beside(compare, pairs, endpoint, seconds)
            for name, one in seen.items():
                if name not in best or one.median < best[name].median:
                    best[name] = one

    with CompareProcess(metrics) as bare, CompareProcess(everything) as whole:
        await rounds_of({"a process: metrics": bare, "a process: texts too": whole})
        memory = f"{resident('self')} MiB here and {resident(whole.pid)} in the process that compares"
    await rounds_of(
        {
            "a thread: metrics": fresh(ready_comparison(metrics)),
            "a thread: texts too": fresh(ready_comparison(everything)),
        }
    )
    print(
        f"{'beside':<24}{'calls/s':>8}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}{'timer late p99 ms':>20}"
        f"{'p50 / alone':>13}{'pairs/s':>9}"
    )
    for name, one in best.items():
        p50, p95, p99 = np.quantile(one.calls, [0.5, 0.95, 0.99])
        print(
            f"{name:<24}{len(one.calls) / seconds:>8.0f}{p50:>9.1f}{p95:>9.1f}{p99:>9.1f}"
            f"{np.quantile(one.late, 0.99):>20.1f}{p50 / best['alone'].median:>13.2f}{one.pairs_s:>9.0f}"
        )
    print(f"memory: {memory}; all in one {resident('self')} MiB")
    await endpoint.close()


def fresh(compare: Compares) -> Compare:
    """Compare copies: what was made of an answer stays with it, and would be free the next time."""
    return lambda pairs: list(compare(pickle.loads(pickle.dumps(pairs))))


def resident(pid: object) -> int:
    """Return the resident memory of a process in MiB (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    try:
        asyncio.run(run(f"http://127.0.0.1:{ours.recv()}", seconds, rounds))
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
