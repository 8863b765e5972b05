"""Streamlit collects garbage after each run of a page, among all objects of the process."""

from __future__ import annotations

import gc
import sys

_loaded = 0


def leave_out_modules() -> None:
    """From now on look through no object that is there now: they are the loaded modules', which stay.

    Some 200,000 objects take 100 ms or more of a processor, as long as a plain page itself. Once a process,
    and once more where modules were loaded since: those that one page needs, such as scipy's tests, take
    the others 10 ms.
    """
    global _loaded
    if len(sys.modules) != _loaded:
        _loaded = len(sys.modules)
        gc.collect()
        gc.freeze()
