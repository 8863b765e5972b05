"""A child process that cannot outlive us, started without running Python between fork and exec.

Linux can send a child a signal when its parent dies (`prctl(PR_SET_PDEATHSIG)`), with two traps:

- The call must be made in the child. `preexec_fn` would run Python code in a forked copy of a
  threaded process, which can deadlock; so a fresh interpreter makes the call and then becomes the
  program with `execv`. The process id stays the same.
- "Parent" means the *thread* that started the child. A thread of its own starts it and waits for
  its end, so a caller's worker thread may end without taking the child along.

Where there is no prctl the child is stopped at exit only.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from ingest.errors import FatalError

_LAUNCHER = """
import os, signal, sys
parent, program = int(sys.argv[1]), sys.argv[2:]
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
os.execv(program[0], program)
"""


class ChildProcess:
    """A running program, its output kept in a file."""

    def __init__(
        self, program: Sequence[str], output: Path, environ: Mapping[str, str] | None = None
    ) -> None:
        """Start `program` (its first item is a path), with standard output and error to `output`.

        Raises FatalError if the program cannot be started.
        """
        self._output = output
        command = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *program]
        started = threading.Event()
        outcome: list[subprocess.Popen[bytes] | OSError] = []

        def own() -> None:
            try:
                with output.open("wb") as stream:
                    process = subprocess.Popen(
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=stream,
                        stderr=subprocess.STDOUT,
                        env=None if environ is None else dict(environ),
                        start_new_session=True,
                    )
            except OSError as error:
                outcome.append(error)
                return
            else:
                outcome.append(process)
            finally:
                started.set()
            process.wait()

        self._owner = threading.Thread(target=own, name=f"owner of {Path(program[0]).name}", daemon=True)
        self._owner.start()
        started.wait()
        (first,) = outcome
        if isinstance(first, OSError):
            raise FatalError(f"cannot start {program[0]}: {first}")
        self._process = first
        atexit.register(self.stop)

    @property
    def pid(self) -> int:
        """The process id; the program's own, not a launcher's."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for a signal."""
        return self._process.poll()

    def output_tail(self, lines: int = 5) -> str:
        """The last lines of the output so far, joined to one line."""
        text = self._output.read_text(encoding="utf-8", errors="replace")
        return " | ".join(line.strip() for line in text.splitlines()[-lines:] if line.strip())

    def stop(self, grace_s: float = 5.0) -> None:
        """Terminate by pid, kill after `grace_s` seconds, and wait. Safe to call twice."""
        process = self._process
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(grace_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._owner.join()
        atexit.unregister(self.stop)
