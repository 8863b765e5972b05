"""Streamlit collects garbage after each run of a page, among all objects of the process."""

from __future__ import annotations

import gc
from functools import cache


@cache
def leave_out_modules() -> None:
    """From now on look through no object that is there now: they are the loaded modules', which stay.

    Some 200,000 objects take 100 ms or more of a processor, as long as a plain page itself. Once a process.
    """
    gc.collect()
    gc.freeze()
