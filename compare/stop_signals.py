"""SIGTERM and SIGINT from the first moment to the last. Imports nothing heavy, so that it can come first."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

_CAUGHT = (signal.SIGTERM, signal.SIGINT)

_log = logging.getLogger(__name__)


class StopSignals:
    """While inside, the first signal begins the orderly end, and a second one ends the process at once.

    Before there is anything to drain, SIGTERM raises SystemExit(0) and SIGINT KeyboardInterrupt. A
    second signal exits with 128 plus its number and nothing more is said: whatever is under way then is
    delivered again, as after a kill. Only the main thread may take signals; in another one this does
    nothing, and the caller has its own way to stop.
    """

    def __init__(self) -> None:
        self._stop: Callable[[], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_caught = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._caught) for number in _CAUGHT}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def stopping(self, stop: Callable[[], None]) -> Iterator[None]:
        """Meanwhile the first signal calls `stop`, on the running loop."""
        self._loop, self._stop = asyncio.get_running_loop(), stop
        try:
            yield
        finally:
            self._loop = self._stop = None

    def _caught(self, number: int, frame: FrameType | None) -> None:
        if self._is_caught:
            os._exit(128 + number)
        self._is_caught = True
        if self._loop is not None and self._stop is not None:
            name = signal.Signals(number).name
            _log.warning("%s: no more records are taken, those under way are finished", name)
            self._loop.call_soon_threadsafe(self._stop)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            raise SystemExit(0)
