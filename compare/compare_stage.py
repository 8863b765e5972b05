"""The comparison of pairs in batches, never on the event loop: a thread waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from compare.result import Comparison
from ingest.errors import DeadLetterError
from ingest.pair import ResponsePair

Compare = Callable[[Sequence[ResponsePair]], list[Comparison | DeadLetterError]]
"""Compares pairs: one result for each, in order. A pair that breaks a metric gives its error.

Without pairs it gets ready: whatever it has to wait for is there afterwards.
"""

_Waiting = tuple[Sequence[ResponsePair], "asyncio.Future[list[Comparison | DeadLetterError]]"]


class CompareStage:
    """Gathers the pairs that wait and compares them together: the text encoder works in batches.

    `run` is a task beside the callers of `compare`; it ends by cancellation only.
    """

    def __init__(self, compare: Compare, max_pairs: int = 64) -> None:
        self._compare = compare
        self._max_pairs = max_pairs
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue(maxsize=max_pairs)
        self._thread = ThreadPoolExecutor(1, "gnomon-compare")

    async def compare(self, pairs: Sequence[ResponsePair]) -> list[Comparison | DeadLetterError]:
        """One result for each pair. Blocks while too many wait. Raises what the comparison raises."""
        future: asyncio.Future[list[Comparison | DeadLetterError]]
        future = asyncio.get_running_loop().create_future()
        await self._queue.put((pairs, future))
        return await future

    async def run(self) -> None:
        """Serve callers until cancelled. What the comparison cannot be ready without is raised at once."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._compare, ())
        while True:
            group = [await self._queue.get()]
            while not self._queue.empty() and sum(len(pairs) for pairs, _ in group) < self._max_pairs:
                group.append(self._queue.get_nowait())
            everything = [pair for pairs, _ in group for pair in pairs]
            try:
                results = await loop.run_in_executor(self._thread, self._compare, everything)
                if len(results) != len(everything):
                    raise RuntimeError(f"{len(everything)} pairs gave {len(results)} comparisons")
            except Exception as error:
                _give_up(group, error)
                raise
            at = 0
            for pairs, future in group:
                if not future.done():
                    future.set_result(results[at : at + len(pairs)])
                at += len(pairs)

    async def close(self) -> None:
        """End the thread, once it is through with what it compares now."""
        await asyncio.to_thread(self._thread.shutdown)


def _give_up(group: Sequence[_Waiting], error: Exception) -> None:
    for _, future in group:
        if not future.done():
            future.set_exception(error)
