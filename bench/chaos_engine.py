"""The engine of the chaos run, in a process of its own: an embedded folder served over HTTP until SIGTERM.

Killing a service then never kills the engine. Everyone else finds it by the folder's lock file.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from compare.cli.locate import embedded_store
from compare.demo.child import ChildProcess
from compare.store.client import open_store
from compare.store.lockfile import Owner, read_owner

START_SECONDS = 60.0

SERVE = "import sys; from bench.chaos_engine import serve; serve(sys.argv[1])"


def serve(folder: str) -> None:
    """Own the folder until SIGTERM. Runs in the child process."""
    with open_store(embedded_store(Path(folder)), role="owner"):
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


def start_engine(folder: Path, log: Path) -> tuple[ChildProcess, Owner]:
    """Start the process; returns it and where it serves. Raises RuntimeError if it does not come up."""
    child = ChildProcess([sys.executable, "-c", SERVE, str(folder)], log)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and child.exit_code is None:
        owner = read_owner(folder) if folder.is_dir() else None
        if owner is not None and owner.pid == child.pid:
            return child, owner
        time.sleep(0.05)
    child.stop()
    raise RuntimeError(f"the engine did not start: {child.output_tail()}")
