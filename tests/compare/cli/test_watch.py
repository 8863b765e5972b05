"""`gnomon watch` as real processes on one embedded store."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from compare.cli.main import cli
from compare.store.client import Store, open_store
from tests.compare.alerts.conftest import Writer
from tests.fixtures.stores import MigratedAt

SETTINGS = """
[store]
url = "{url}"
[alerts]
interval_s = 0.3
lease_s = 6.0
tolerated_regression_rate = 0.02
mean_pairs_between_false_alarms = 77
[experiment]
name = "{experiment}"
reference = "fp16"
candidates = ["q4"]
models = {{ "*" = {{ fp16 = "m", q4 = "m" }} }}
[endpoints.fp16]
url = "http://127.0.0.1:1"
[endpoints.q4]
url = "http://127.0.0.1:2"
"""
PATIENCE_S = 180.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Iterator[Store]:
    with open_store(migrated_at(tmp_path_factory.mktemp("watch-store")), role="owner") as opened:
        yield opened


@pytest.fixture
def writer(store: Store) -> Writer:
    return Writer(store)


@pytest.fixture
def config(writer: Writer, tmp_path: Path) -> Path:
    path = tmp_path / "gnomon.toml"
    path.write_text(SETTINGS.format(url=writer.store.where, experiment=writer.experiment))
    return path


class Watching:
    """One `gnomon watch`; its standard error goes to a file."""

    def __init__(self, config: Path, name: str, *options: str) -> None:
        self.log = config.with_name(f"{name}.log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "compare.cli.main", "watch", "--config", str(config), *options],
                stderr=log,
            )

    def says(self, text: str) -> bool:
        return text in self.log.read_text()


def wait_for(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def pairs(writer: Writer, start: int, end: int) -> None:
    for offset in range(start, end):
        writer.pair(offset, worse="candidate" if offset > 9 else "")
    writer.settled(start, end)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_the_second_stands_by_and_takes_over_from_a_killed_one_and_sigterm_ends_it(
    writer: Writer, config: Path
) -> None:
    pairs(writer, 0, 26)
    port = free_port()
    first = Watching(config, "first")
    try:
        wait_for(lambda: first.says("alert firing"))
        second = Watching(config, "second", "--port", str(port))
        try:
            wait_for(lambda: second.says("standing by"))
            assert f"watched by {socket.gethostname()}:{first.process.pid}" in second.log.read_text()
            assert metric(port, "gnomon_alerts_is_leader") == "0.0"
            assert metric(port, 'gnomon_alerts_firing{severity="critical"}') is None
            first.process.kill()
            pairs(writer, 26, 30)
            wait_for(lambda: writer.folded() == 30)
            wait_for(lambda: metric(port, 'gnomon_alerts_firing{severity="critical"}') == "4.0")
            assert metric(port, "gnomon_alerts_is_leader") == "1.0"
            assert metric(port, "gnomon_alerts_backlog_pairs") == "0.0"
            wait_for(lambda: metric(port, "gnomon_alerts_last_run_timestamp_seconds") is not None)
            assert second.says(f"over from {socket.gethostname()}:{first.process.pid}, whose lease ran out")
            second.process.send_signal(signal.SIGTERM)
            assert second.process.wait(timeout=PATIENCE_S) == 0
            assert not second.says("Traceback")
        finally:
            second.process.kill()
            second.process.wait()
    finally:
        first.process.kill()
        first.process.wait()
    # Given back at the end: a run of its own need not wait for the lease.
    assert "nothing new" in once(config)


def metric(port: int, name: str) -> str | None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(f"{name} "):
                return str(line).removeprefix(f"{name} ")
    return None


def once(config: Path, *options: str) -> str:
    result = CliRunner().invoke(cli, ["watch", "--once", "--config", str(config), *options])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_once_says_what_it_raised(writer: Writer, config: Path) -> None:
    pairs(writer, 0, 26)
    assert once(config) == f"{writer.experiment}: 4 firing\n"
    assert once(config) == f"{writer.experiment}: nothing new\n"


def test_once_leaves_an_experiment_that_is_watched_alone(writer: Writer, config: Path) -> None:
    watching = Watching(config, "watching")
    try:
        wait_for(lambda: watching.says("watching, generation"))
        assert f"watched by {socket.gethostname()}:{watching.process.pid}; nothing was done" in once(config)
    finally:
        watching.process.terminate()
        assert watching.process.wait(timeout=PATIENCE_S) == 0


def test_a_folder_needs_the_experiments_name_if_it_has_several(store: Store, config: Path) -> None:
    for _ in range(2):
        other = Writer(store)
        other.pair(0)
        other.settled(0, 1)
    result = CliRunner().invoke(
        cli, ["watch", "--once", "--dir", store.where.removeprefix("chdb://")], standalone_mode=False
    )
    assert "say which experiment with --experiment; known: e-" in str(result.exception)
    result = CliRunner().invoke(
        cli,
        ["watch", "--once", "--dir", store.where.removeprefix("chdb://"), "--experiment", other.experiment],
    )
    assert result.stdout == f"{other.experiment}: nothing new\n"
    result = CliRunner().invoke(
        cli,
        ["watch", "--once", "--dir", store.where.removeprefix("chdb://"), "--experiment", "nobody"],
        standalone_mode=False,
    )
    assert "experiment nobody is unknown; known: e-" in str(result.exception)
