"""A runner in a process of its own that ends or stops itself at a stated insert.

Run: python -m tests.compare.alerts.runner_child URL EXPERIMENT CANDIDATE ALERTS NOTIFY TABLE WHEN ACTION

WHEN is before or after, ACTION is KILL or STOP.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from compare.alerts.runner import AlertRunner
from compare.store.client import Store, open_store
from ingest.settings import StoreSettings
from ingest.settings_alerts import AlertSettings
from ingest.settings_notify import NotifySettings


class Ending(Store):
    """A store that sends its own process a signal at the first insert of rows into one table."""

    table = ""
    when = ""
    number = signal.SIGKILL
    is_done = False

    def insert(
        self, table: str, column_names: Sequence[str], rows: Sequence[Sequence[Any]], **more: Any
    ) -> None:
        """Insert, and end before or after it."""
        is_it = table == self.table and bool(rows) and not Ending.is_done
        if is_it and self.when == "before":
            self._end()
        super().insert(table, column_names, rows, **more)
        if is_it and self.when == "after":
            self._end()

    def _end(self) -> None:
        Ending.is_done = True
        print("reached", flush=True)
        os.kill(os.getpid(), self.number)


def main(arguments: list[str]) -> None:
    """Watch until killed."""
    url, experiment, candidate, alerts, notify, table, when, action = arguments
    Ending.table, Ending.when, Ending.number = table, when, getattr(signal, f"SIG{action}")
    with open_store(StoreSettings(url=url), role="any") as store:
        store.__class__ = Ending
        runner = AlertRunner(
            store,
            msgspec.json.decode(alerts, type=AlertSettings),
            experiment,
            [candidate],
            notify=msgspec.json.decode(notify, type=NotifySettings),
        )
        runner.start()
        print("started", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
