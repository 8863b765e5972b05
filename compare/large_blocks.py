"""Large blocks of memory go back to the system as soon as they are free.

glibc takes a block of 128 KiB or more from the system and gives it back when it is freed, but learns from
each such block, up to 32 MiB, to keep the next ones of its size in the heap of the thread that asks. A record
of 15 MiB is held in a dozen forms by half a dozen threads, and each heap kept the room of its own for good.
What that took is in docs/design/0007.
"""

from __future__ import annotations

import ctypes
import sys

LARGE_BYTES = 1 * 1024 * 1024
"""Above what an ordinary pair needs in one piece (0.85 MB), which is better kept at hand."""

# malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def give_back_large_blocks() -> None:
    """Set it for this process. Without effect where the C library is not glibc, which alone learns so."""
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
    # What glibc itself keeps at a heap's end once it has learnt; else it would stay at 128 KiB from now on.
    mallopt(_M_TRIM_THRESHOLD, 2 * LARGE_BYTES)
