"""What is under way for each partition, so that it can be dropped when the partition is taken away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

LOOK_S = 0.2
"""How often is looked for partitions that were taken away."""

T = TypeVar("T")


class UnderWay(Generic[T]):
    """Tasks by partition and epoch. `watch` is a task beside the callers of `carry`."""

    def __init__(self, is_current: Callable[[int, int], bool]) -> None:
        self._is_current = is_current
        self._tasks: dict[asyncio.Task[T], tuple[int, int]] = {}

    async def carry(self, work: Coroutine[Any, Any, T], partition: int, epoch: int) -> T | None:
        """What `work` returns or raises; None if the partition is taken away before, and `work` cancelled."""
        task = asyncio.create_task(work)
        self._tasks[task] = (partition, epoch)
        try:
            await asyncio.wait([task])
            return None if task.cancelled() else task.result()
        finally:
            task.cancel()
            del self._tasks[task]

    async def watch(self) -> None:
        """Cancel what the next owner will do anew. Ends by cancellation only."""
        while True:
            await asyncio.sleep(LOOK_S)
            for task, (partition, epoch) in self._tasks.items():
                if not self._is_current(partition, epoch):
                    task.cancel()
