"""Runs commands as a reader of the documents types them: short ones in this process, services as others."""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

import pytest

from compare.cli.main import main
from tests.fixtures.kept_broker import free_port, until

BIN = Path(sys.executable).parent
_WAIT_S = 120.0


def ran(text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a `gnomon ...` of the current folder; `> FILE` goes to written/."""
    words = shlex.split(text)[1:]
    file = words[words.index(">") + 1] if ">" in words else None
    stdin, sys.stdin = sys.stdin, io.StringIO("y\n")
    try:
        with warnings.catch_warnings():
            # As for a person who types it.
            warnings.simplefilter("ignore")
            main(words[: words.index(">")] if file else words)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    else:
        raise AssertionError(f"{text} did not end")
    finally:
        sys.stdin = stdin
    out, err = capsys.readouterr()
    if file:
        Path("written").mkdir(exist_ok=True)
        Path("written", file).write_text(out, encoding="utf-8")
    return code, out, err


def in_bash(text: str, folder: Path, environ: Mapping[str, str] | None = None) -> str:
    """What a script prints. Raises AssertionError with its error output where a command of it fails."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=_environ(environ),
        capture_output=True,
        text=True,
        timeout=_WAIT_S,
        check=False,
    )
    assert done.returncode == 0, f"{text}: exit code {done.returncode}: {done.stderr}"
    return done.stdout


class Running:
    """A service that was started with a printed command, its port a free one. A context manager.

    At the end it gets SIGTERM and must end with 0 and no traceback.
    """

    def __init__(self, text: str, folder: Path, environ: Mapping[str, str] | None = None) -> None:
        self.port = free_port()
        words = shlex.split(re.sub(r"(?<=--port )\d+", str(self.port), text))
        if words[:2] == ["gnomon", "dashboard"] and "--port" not in words:
            words += ["--port", str(self.port)]
        self.text = text
        self._log = folder / f"service-{self.port}.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [BIN / words[0], *words[1:]], cwd=folder, env=_environ(environ), stdout=log, stderr=log
            )

    def said(self) -> str:
        """All that it wrote so far."""
        return self._log.read_text(encoding="utf-8")

    def wait_for(self, is_so: Callable[[], bool]) -> None:
        """Wait until it is so. Raises AssertionError with what the service wrote if it ends, or in vain."""

        def is_so_or_ended() -> bool:
            assert self._process.poll() is None, f"{self.text} ended: {self.said()[-2000:]}"
            return is_so()

        try:
            until(is_so_or_ended, _WAIT_S)
        except AssertionError as error:
            raise AssertionError(f"{self.text}: {error}: {self.said()[-2000:]}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.kill()
            self._process.wait()
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        assert code == 0, f"{self.text}: exit code {code}: {self.said()[-2000:]}"
        assert "Traceback" not in self.said(), self.said()


def answers(url: str) -> bool:
    """Whether a page answers 200."""
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def watches(service: Running) -> bool:
    """Whether a `gnomon watch` says that it watches, or stands by."""
    return "watching, generation" in service.said() or "standing by" in service.said()


def _environ(more: Mapping[str, str] | None) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GNOMON_")}
    return {**plain, "PATH": f"{BIN}:{os.environ['PATH']}", "TERM": "dumb", **(more or {})}
