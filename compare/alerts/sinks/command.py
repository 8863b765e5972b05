"""A program that gets the notice as JSON on its standard input. No shell is in between."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from datetime import datetime

import msgspec

from compare.alerts.notice import Delivery, Notice
from compare.alerts.sinks.text import render
from compare.alerts.sinks.webhook import SCHEMA
from compare.visible import visible_line
from ingest.settings_notify import CommandSink

TRY_AGAIN = 75
"""EX_TEMPFAIL of sysexits.h: the program asks to be called again later."""
_SEEN = ("PATH", "HOME", "LANG", "TZ")
_SHOWN_BYTES = 4_096


class Command:
    """One program. It is started in a session of its own, so that its children end with it."""

    def __init__(self, name: str, settings: CommandSink) -> None:
        self.name = name
        self._settings = settings

    def send(self, notice: Notice, now: datetime) -> Delivery:
        """Run it once. See `Sink`."""
        program = self._settings.argv[0]
        # Files and not pipes: a child that lives on would hold a pipe open, and we would wait for it.
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
            given.write(self._input(notice))
            given.seek(0)
            try:
                process = subprocess.Popen(
                    self._settings.argv,
                    stdin=given,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    env=self._environment(),
                    start_new_session=True,
                )
            except OSError as error:
                return Delivery(1, f"{program}: cannot be started: {error.strerror}")
            try:
                code: int | None = process.wait(self._settings.timeout_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if code == 0:
                return Delivery(1)
            said.seek(0, os.SEEK_END)
            said.seek(max(said.tell() - _SHOWN_BYTES, 0))
            lines = said.read().decode("utf-8", "replace").splitlines()
        words = f": {visible_line(lines[-1], 200)}" if lines else ""
        if code is None:
            return Delivery(1, f"{program}: not done after {self._settings.timeout_s:g} s{words}")
        return Delivery(1, f"{program}: ended with {code}{words}", code == TRY_AGAIN)

    def preview(self, notice: Notice, now: datetime) -> str:
        """The arguments and the input. See `Sink`."""
        body = msgspec.json.format(self._input(notice), indent=2).decode()
        return f"run {msgspec.json.encode(self._settings.argv).decode()}\n\n{body}"

    def _input(self, notice: Notice) -> bytes:
        title, body = render(notice, self._settings)
        document = {"schema": SCHEMA, "key": notice.key, "title": title, "body": body, "notice": notice}
        return msgspec.json.encode(document)

    def _environment(self) -> dict[str, str]:
        seen = {name: os.environ[name] for name in _SEEN if name in os.environ}
        return {**seen, **self._settings.environment}
