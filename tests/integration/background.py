"""The service on a thread of the test's own process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import ClassVar, Protocol

from compare.counters import Counters
from compare.run import RunReport, run_service
from ingest.settings import Settings


class HasSettings(Protocol):
    """A bench, as far as a service needs it."""

    @property
    def settings(self) -> Settings: ...


def until(condition: Callable[[], bool], seconds: float = 180.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


class Service:
    """`run_service` on a thread: what it returned or raised, and its counters meanwhile.

    One that a failed test leaves is ended after the test: it holds the process's only engine.
    """

    running: ClassVar[list[Service]] = []

    def __init__(self, bench: HasSettings, outcomes: int) -> None:
        self.stored = 0
        self._settings = bench.settings
        self._outcomes = outcomes
        self._result: list[RunReport | BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.running.append(self)

    def _run(self) -> None:
        def stop_when(counters: Counters) -> bool:
            self.stored = counters.outcomes
            return counters.outcomes >= self._outcomes

        try:
            self._result.append(run_service(self._settings, stop_when=stop_when))
        except BaseException as error:
            self._result.append(error)

    def end(self) -> None:
        """Let it drain and end, whatever it has stored."""
        self._outcomes = 0

    def report(self) -> RunReport:
        self._thread.join(300)
        (result,) = self._result
        if isinstance(result, BaseException):
            raise result
        return result

    @classmethod
    def end_all(cls) -> None:
        """End and await those that are left."""
        while cls.running:
            left = cls.running.pop()
            left.end()
            left._thread.join(60)
