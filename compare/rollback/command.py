"""Runs a configured program once: no shell, bounded time and output.

When its time is up, its children are killed with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

import msgspec

MAX_OUTPUT_BYTES = 4096
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER")
"""Of our own environment; it may hold secrets."""


class Ran(msgspec.Struct, frozen=True):
    """How it went. `exit_code` is None where it was not started or was killed for its time.

    `output` is the end of what it printed, both streams; `problem` is one line, empty if it ended with 0.
    """

    exit_code: int | None
    output: str
    problem: str


def run_command(
    argv: Sequence[str], content: bytes, *, timeout_s: float, environment: Mapping[str, str] | None = None
) -> Ran:
    """Run `argv` with `content` on its standard input; blocks for `timeout_s` at most. Raises nothing.

    It is in a process group of its own, which is killed when the time is up.
    """
    seen = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | dict(environment or {})
    # Files, not pipes: a child that it leaves behind may hold a pipe open for ever.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
        given.write(content)
        given.seek(0)
        try:
            process = subprocess.Popen(
                list(argv), stdin=given, stdout=printed, stderr=subprocess.STDOUT, env=seen,
                start_new_session=True, close_fds=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            return Ran(None, "", f"{argv[0]} cannot be started: {words}")
        code: int | None = None
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            _kill(process)
        except BaseException:
            _kill(process)
            raise
        size = printed.seek(0, os.SEEK_END)
        printed.seek(max(0, size - MAX_OUTPUT_BYTES))
        output = printed.read().decode(errors="replace").replace("\0", "\ufffd")
    if code is None:
        return Ran(None, output, f"{argv[0]} did not end within {timeout_s:g} s and was killed")
    if code:
        how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
        return Ran(code, output, f"{argv[0]} {how}")
    return Ran(0, output, "")


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        # The leader is not reaped yet, so the group's number is still ours.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
