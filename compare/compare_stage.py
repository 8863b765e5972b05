"""The comparison of pairs in batches, never on the event loop: a thread waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, runtime_checkable

from compare.result import Comparison
from ingest.errors import DeadLetterError
from ingest.pair import ResponsePair

Compare = Callable[[Sequence[ResponsePair]], list[Comparison | DeadLetterError]]
"""Compares pairs: one result for each, in order. A pair that breaks a metric gives its error.

Without pairs it gets ready: whatever it has to wait for is there afterwards.
"""


@runtime_checkable
class Abandons(Protocol):
    """A Compare that can be told to stop at once."""

    def abandon(self) -> None:
        """Give up what is compared now: the call that waits for it raises. Called from another thread."""


_GROUPS = 2
"""Under way at once: one is compared, the next is on its way."""

_Waiting = tuple[Sequence[ResponsePair], "asyncio.Future[list[Comparison | DeadLetterError]]"]


class CompareStage:
    """Gathers the pairs that wait and compares them together: the text encoder works in batches.

    Two groups are under way, so that the comparison has its next one at hand when it is through with one;
    it is called from two threads. `run` is a task beside the callers of `compare`; it ends by cancellation
    only.
    """

    def __init__(self, compare: Compare, max_pairs: int = 16) -> None:
        """`max_pairs` in a group: what smaller ones cost is in docs/design/0007."""
        self._compare = compare
        self._max_pairs = max_pairs
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue(maxsize=max_pairs)
        self._threads = ThreadPoolExecutor(_GROUPS, "gnomon-compare")
        self._under_way: set[Future[list[Comparison | DeadLetterError]]] = set()

    async def compare(self, pairs: Sequence[ResponsePair]) -> list[Comparison | DeadLetterError]:
        """One result for each pair. Blocks while too many wait. Raises what the comparison raises."""
        future: asyncio.Future[list[Comparison | DeadLetterError]]
        future = asyncio.get_running_loop().create_future()
        await self._queue.put((pairs, future))
        return await future

    async def run(self) -> None:
        """Serve callers until cancelled. What the comparison cannot be ready without is raised at once."""
        await self._call(())
        serving = [asyncio.create_task(self._serve()) for _ in range(_GROUPS)]
        try:
            await asyncio.gather(*serving)
        finally:
            for task in serving:
                task.cancel()

    async def close(self) -> None:
        """End the threads. What they still compare is given up, where the comparison can do that."""
        compare: object = self._compare
        if self._under_way and isinstance(compare, Abandons):
            compare.abandon()
        await asyncio.to_thread(self._threads.shutdown)

    async def _serve(self) -> None:
        """One group after another, each while another group is under way."""
        while True:
            group = [await self._queue.get()]
            while not self._queue.empty() and sum(len(pairs) for pairs, _ in group) < self._max_pairs:
                group.append(self._queue.get_nowait())
            everything = [pair for pairs, _ in group for pair in pairs]
            try:
                results = await self._call(everything)
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

    async def _call(self, pairs: Sequence[ResponsePair]) -> list[Comparison | DeadLetterError]:
        calling = self._threads.submit(self._compare, pairs)
        self._under_way.add(calling)
        calling.add_done_callback(self._under_way.discard)
        return await asyncio.wrap_future(calling)


def _give_up(group: Sequence[_Waiting], error: Exception) -> None:
    for _, future in group:
        if not future.done():
            future.set_exception(error)
