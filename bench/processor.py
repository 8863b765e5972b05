"""Processor time of another process."""

from __future__ import annotations

import os
from pathlib import Path


def processor_of(pid: int, *, with_ended_children: bool = False) -> float:
    """Processor seconds of a process so far, of all its threads, and of children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    ticks = sum(map(int, fields[11 : 15 if with_ended_children else 13]))
    return ticks / os.sysconf("SC_CLK_TCK")
