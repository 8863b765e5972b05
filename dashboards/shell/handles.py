"""Handles on the store for the questions of all sessions, each lent for one call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from compare.store.client import Store

MOST_FREE = 8
"""So many stay open while nobody asks."""
MOST_LENT = 16
"""So many are with the store at once, which is half of what the dashboard's account may; others wait here."""


class Handles:
    """Calls on one handle wait for each other, so each call has its own. To make one asks the store what it
    is, some 35 ms of a processor, so they are kept. Called from any thread.
    """

    def __init__(self, first: Store) -> None:
        self._first = first
        self._free = [first]
        self._lock = threading.Lock()
        self._turn = threading.BoundedSemaphore(MOST_LENT)
        self._is_closed = False

    @property
    def where(self) -> str:
        """The store, as errors name it."""
        return self._first.where

    @contextmanager
    def lent(self) -> Iterator[Store]:
        """A handle that nobody else uses meanwhile. Raises what the store raises if it cannot be reached."""
        with self._turn:
            with self._lock:
                store = self._free.pop() if self._free else None
            store = store or self._first.another()
            try:
                yield store
            finally:
                self._back(store)

    def close(self) -> None:
        """Close those that are free now, and each other when it comes back."""
        with self._lock:
            self._is_closed = True
            free, self._free = self._free, []
        for store in free:
            store.close()

    def _back(self, store: Store) -> None:
        with self._lock:
            is_kept = not self._is_closed and len(self._free) < MOST_FREE
            if is_kept:
                self._free.append(store)
        if not is_kept:
            store.close()
