"""Whether the C library still maps a large block by itself after it has freed one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A process of its own: no thread of another test allocates between two looks.
SCRIPT = """
import ctypes, sys
from compare.large_blocks import give_back_large_blocks

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes, libc.mallinfo2.restype = [ctypes.c_void_p], Info
if sys.argv[1] == "set":
    give_back_large_blocks()
for _ in range(3):
    before = libc.mallinfo2().hblks
    block = libc.malloc(16 * 1024 * 1024)
    print(libc.mallinfo2().hblks - before)
    libc.free(block)
"""


@pytest.mark.parametrize(("is_set", "mapped"), [("set", "1 1 1"), ("not set", "1 0 0")])
def test_a_large_block_is_mapped_each_time_and_so_given_back(is_set: str, mapped: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, is_set], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == mapped.split()
