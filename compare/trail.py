"""When one record passed each stage of its way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Trail:
    """Begin and end of each stage, in Unix nanoseconds, in the order of their ends."""

    __slots__ = ("began_ns", "stages")

    def __init__(self) -> None:
        self.began_ns = time.time_ns()
        self.stages: list[tuple[str, int, int]] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Note the time inside; also of a stage that raises."""
        began = time.time_ns()
        try:
            yield
        finally:
            self.stages.append((name, began, time.time_ns()))
