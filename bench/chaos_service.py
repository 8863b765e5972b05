"""One service under test: `gnomon run` in a child process behind its own proxy, started and killed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.chaos_proxy import Proxy, ProxyLoop
from compare.demo.child import ChildProcess
from compare.store.lockfile import Owner

MARK = "CHAOS_RUN"
"""Environment variable of a service and of whatever it starts: the run's folder."""

COMMAND = "from compare.cli.main import main; main()"

MAX_IN_FLIGHT = 8
BATCH_PAIRS = 25
COMPARE_BACKLOG = 32
"""Workers beyond those that replay (`compare.pipeline`): each may hold one record."""

CONFIG = """
[kafka]
bootstrap_servers = ["{bootstrap}"]
topic = "{topic}"
dead_letter_topic = "{topic}-dead"
group = "{group}"
session_timeout_ms = 6000
heartbeat_interval_ms = 500
max_poll_interval_ms = 6000
[store]
url = "{store_url}"
database = "{database}"
[compare]
embedding_model = ""
[delivery]
max_in_flight_requests = {in_flight}
batch_pairs = {batch_pairs}
batch_seconds = 0.3
commit_interval_s = 0.5
[experiment]
name = "chaos"
reference = "ref"
candidates = ["cand"]
noise_fraction = 0.0
forced_fraction = 0.0
[experiment.models."*"]
ref = "full"
cand = "q4"
"""
ENDPOINT = """
[endpoints.{name}]
url = "http://127.0.0.1:{port}"
first_token_timeout_s = 2.0
idle_timeout_s = 2.0
total_timeout_s = 6.0
[endpoints.{name}.headers]
X-Run = "{run}"
"""


class Setting(msgspec.Struct, frozen=True):
    """Where a service finds its surroundings."""

    folder: Path
    bootstrap: str
    topic: str
    group: str
    engine: Owner
    ports: dict[str, int]


_DIES_WITHIN_S = 10.0


class Killed(msgspec.Struct, frozen=True):
    """One SIGKILL: of which run, when (seconds since the epoch), at which point."""

    run: str
    at: float
    point: str


class Service:
    """A slot for one service process at a time. `kills` and `runs` are counted over all of them."""

    def __init__(self, name: str, setting: Setting, loop: ProxyLoop, database: str = "gnomon") -> None:
        self.name = name
        self.point = ""
        self.kills: list[Killed] = []
        self.ended_alone: list[str] = []
        """Runs that ended though nobody killed them, with their last words."""
        self.runs = 0
        self._setting = setting
        self._database = database
        self._child: ChildProcess | None = None
        self._is_stopping_only = False
        self._striking = threading.Lock()
        self._counted = ""
        self.proxy = Proxy(loop, setting.engine.url, self._struck)

    @property
    def run(self) -> str:
        """The name of the run now: the slot's and its number."""
        return f"{self.name}{self.runs}"

    @property
    def is_alive(self) -> bool:
        """Whether a process runs in this slot."""
        return self._child is not None and self._child.exit_code is None

    @property
    def exit_code(self) -> int | None:
        """How the last process ended, None if it runs or there was none."""
        return None if self._child is None else self._child.exit_code

    def start(self, command: Sequence[str] = ("run",)) -> None:
        """Start the next run: `gnomon` with `command`, and a settings file of its own."""
        setting, run = self._setting, f"{self.name}{self.runs + 1}"
        config = setting.folder / f"{run}.toml"
        text = CONFIG.format(
            bootstrap=setting.bootstrap,
            topic=setting.topic,
            group=setting.group,
            store_url=self.proxy.url,
            database=self._database,
            in_flight=MAX_IN_FLIGHT,
            batch_pairs=BATCH_PAIRS,
        )
        for name, port in setting.ports.items():
            text += ENDPOINT.format(name=name, port=port, run=run)
        config.write_text(text)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GNOMON_")}
        environ["GNOMON_STORE_PASSWORD"] = setting.engine.writer_token
        environ[MARK] = str(setting.folder)
        program = [sys.executable, "-c", COMMAND, *command, "--config", str(config)]
        # A trap that springs meanwhile must not take the last process for this run's.
        with self._striking:
            self.runs += 1
            self._child = ChildProcess(program, setting.folder / f"{run}.log", environ)

    def kill(self, point: str) -> None:
        """SIGKILL, by pid, and wait for the end. `point` says at which moment, for the count.

        A process that has ended by itself is noted instead; one that was killed already counts once.
        """
        self._strike(point)
        child = self._child
        # Looked at sooner it would seem alive.
        until = time.monotonic() + _DIES_WITHIN_S
        while child is not None and child.exit_code is None and time.monotonic() < until:
            time.sleep(0.01)

    def _strike(self, point: str) -> None:
        # A trap's thread and the course's may both come to kill one run.
        with self._striking:
            child = self._child
            if self._counted == self.run:
                return
            self._counted = self.run
            if child is None or child.exit_code is not None:
                ending = "never started" if child is None else f"exit code {child.exit_code}"
                self.ended_alone.append(f"{self.run}: {ending}: {self.tail()}")
                return
            os.kill(child.pid, signal.SIGKILL)
            self.kills.append(Killed(self.run, time.time(), point))

    def freeze_when_sprung(self) -> None:
        """From now on a trap stops the process with SIGSTOP instead of killing it."""
        self._is_stopping_only = True

    def thaw(self) -> None:
        """SIGCONT."""
        if self._child is not None:
            self._is_stopping_only = False
            os.kill(self._child.pid, signal.SIGCONT)

    def stop(self, grace_s: float = 40.0) -> int | None:
        """SIGTERM, and SIGKILL after `grace_s`; returns the exit code, None if nothing ran."""
        if self._child is None:
            return None
        self._child.stop(grace_s)
        return self._child.exit_code

    def close(self) -> None:
        """End the process and the proxy."""
        if self._child is not None and self._child.exit_code is None:
            self._child.stop(1.0)
        self.proxy.close()

    def tail(self) -> str:
        """The last lines that the process wrote."""
        return "" if self._child is None else self._child.output_tail(3)

    def _struck(self) -> None:
        # On the proxies' thread.
        child = self._child
        if not self._is_stopping_only:
            self._strike(self.point)
        elif child is not None and child.exit_code is None:
            os.kill(child.pid, signal.SIGSTOP)


def left_behind(folder: Path) -> list[int]:
    """Processes of services of this run, and those that they started, that run now."""
    mark, found = f"{MARK}={folder}".encode(), []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = entry.read_bytes().split(b"\0")
        except OSError:
            # Ended meanwhile, or another user's.
            continue
        if mark in variables:
            found.append(int(entry.parent.name))
    return found


def end_what_is_left(folder: Path) -> None:
    """SIGKILL each of them, by pid."""
    for pid in left_behind(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
