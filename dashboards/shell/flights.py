"""Questions that are under way in the store: what several sessions ask at the same moment is asked once.

Several people open one page when an alert fires, and all of it is the same question.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait

from compare.store.answer import Result
from compare.store.client import Store
from dashboards.shell.handles import Handles
from ingest.errors import RetryError

LONGEST_GOODBYE_S = 5.0

Run = Callable[[Store], Result]


class Flight:
    """One question on a thread of its own; it is broken off when the last who waits for it leaves."""

    def __init__(self) -> None:
        self.asked: Future[Result] = Future()
        self._waiting = 0
        self._store: Store | None = None
        self._lock = threading.Lock()

    def start(self, handles: Handles, run: Run, ended: Callable[[Result | None], None]) -> None:
        """Ask; `ended` is called with the answer, None for an error, before anybody who waits has it."""

        def ask() -> None:
            try:
                with handles.lent() as store:
                    answer = self._run(store, run)
            except BaseException as error:  # noqa: BLE001 - handed to those who wait, whatever it is
                ended(None)
                self.asked.set_exception(error)
            else:
                ended(answer)
                self.asked.set_result(answer)

        threading.Thread(target=ask, name="explorer-query", daemon=True).start()

    def join(self) -> bool:
        """Wait for it too; False if all have left it, and it is lost."""
        with self._lock:
            if self._waiting < 0:
                return False
            self._waiting += 1
            return True

    def leave(self) -> None:
        """Wait no more: the last one breaks it off, unless it has ended."""
        with self._lock:
            self._waiting -= 1
            if self._waiting or self.asked.done():
                return
            self._waiting = -1
            if self._store is None:
                # It has not begun, and will not.
                return
            # Under the lock: a handle that was given back may be another question's.
            self._store.interrupt()
        # However it ends, nobody waits for that: an error would take the place of the rerun.
        wait([self.asked], LONGEST_GOODBYE_S)

    def _run(self, store: Store, run: Run) -> Result:
        with self._lock:
            if self._waiting < 0:
                raise RetryError("nobody waits for this question any more")
            self._store = store
        try:
            return run(store)
        finally:
            with self._lock:
                self._store = None
