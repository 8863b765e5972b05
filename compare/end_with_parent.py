"""No orphans: a process that multiprocessing started ends when the one that started it is no more."""

from __future__ import annotations

import os
import threading
from multiprocessing import parent_process


def end_with_parent() -> None:
    """From now on end this process, wherever it is, as soon as its parent has ended by whatever cause."""
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
