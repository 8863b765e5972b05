"""A real Alertmanager on loopback that tells a webhook of ours."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.compare.alerts.sinks.receivers import Receiver, free_port, receiver

PATIENCE_S = 60.0
CONFIG = """
route:
  receiver: hook
  group_by: [group]
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: hook
    webhook_configs:
      - url: {url}
        send_resolved: true
"""


class Running:
    """Alertmanager on one port and one folder; may be stopped and started again."""

    def __init__(self, folder: Path, hook: Receiver) -> None:
        program = shutil.which("prometheus-alertmanager")
        assert program is not None, "install prometheus-alertmanager (see .ci/system)"
        self.hook = hook
        config = folder / "alertmanager.yml"
        config.write_text(CONFIG.format(url=hook.url))
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._command = [
            program,
            f"--config.file={config}",
            f"--storage.path={folder}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ]

    def start(self) -> None:
        """Start it and wait until it is ready."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=log)
        until(self._is_ready, self._log.read_text)

    def stop(self) -> None:
        """End it, as its service manager would: it keeps what it has told whom, and no alert."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def told(self, group: str) -> list[tuple[str, str]]:
        """(status, severity) of each notification about a group."""
        return [
            (alert["status"], alert["labels"]["severity"])
            for got in list(self.hook.received)
            for alert in got.document["alerts"]
            if alert["labels"]["group"] == group
        ]

    def alerts(self, **labels: str) -> list[dict[str, Any]]:
        """The alerts that it holds with these labels."""
        asked = "&".join(f"filter={name}%3D%22{value}%22" for name, value in labels.items())
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts?{asked}", timeout=5) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def alertmanager(folder: Path) -> Iterator[Running]:
    """One that runs until the end."""
    with receiver() as hook:
        one = Running(folder, hook)
        try:
            one.start()
            yield one
        finally:
            one.stop()


def until(holds: Callable[[], bool], why: Callable[[], object]) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, why()
        time.sleep(0.05)
