"""What a person sees when something is wrong: one clear line, no traceback, exit code not 0."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

GNOMON = Path(sys.executable).with_name("gnomon")

SETTINGS = """
[experiment]
name = "e"
reference = "full"
candidates = ["small"]
models = {"*" = {full = "m", small = "m-4bit"}}

[endpoints.full]
url = "http://127.0.0.1:1"

[endpoints.small]
url = "http://127.0.0.1:1"

[kafka]
bootstrap_servers = ["127.0.0.1:1"]

[store]
url = "chdb://%s"
"""


def gnomon(
    *arguments: str | Path, cwd: Path, prefix: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, str(GNOMON), *map(str, arguments)],
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if not name.startswith("GNOMON_")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def the_one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The single line on stderr of a command that could not do its job."""
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "gnomon.toml"
    path.write_text(SETTINGS % (tmp_path / "store"))
    return path


def test_a_missing_settings_file_is_named(tmp_path: Path) -> None:
    line = the_one_line(gnomon("run", cwd=tmp_path))
    assert "gnomon.toml" in line


def test_a_missing_key_is_named(config: Path, tmp_path: Path) -> None:
    config.write_text(config.read_text().replace('url = "http://127.0.0.1:1"', "", 1))
    line = the_one_line(gnomon("run", cwd=tmp_path))
    assert "endpoints.full" in line
    assert "url" in line


def test_an_unknown_key_is_named_with_the_nearest_one(config: Path, tmp_path: Path) -> None:
    config.write_text(config.read_text().replace("bootstrap_servers", "bootstrap_server"))
    line = the_one_line(gnomon("run", cwd=tmp_path))
    assert "bootstrap_server" in line
    assert "bootstrap_servers" in line


def test_an_unreachable_broker_is_named(config: Path, tmp_path: Path) -> None:
    capture = tmp_path / "capture.jsonl"
    capture.write_text('{"schema": "gnomon.mirror/1", "request_id": "r-1", "request": {"messages": []}}\n')
    line = the_one_line(gnomon("mirror", capture, cwd=tmp_path))
    assert "127.0.0.1:1" in line


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    assert gnomon("migrate", "--dir", "store", cwd=tmp_path).returncode == 0
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        line = the_one_line(gnomon("dashboard", "--dir", "store", "--port", str(port), cwd=tmp_path))
    assert f"127.0.0.1:{port}" in line


def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        # Root may write anywhere but on a read-only file system: mount one that only the child sees.
        mount = f'mount -t tmpfs -o ro tmpfs "{closed}" && exec "$0" "$@"'
        prefix = ("unshare", "--mount", "sh", "-c", mount)
    else:
        closed.chmod(0o500)
    line = the_one_line(gnomon("migrate", "--dir", closed / "store", cwd=tmp_path, prefix=prefix))
    assert str(closed / "store") in line


def test_an_sql_error_is_one_line_with_the_engines_words(tmp_path: Path) -> None:
    assert gnomon("migrate", "--dir", "store", cwd=tmp_path).returncode == 0
    line = the_one_line(gnomon("sql", "--dir", "store", "SELECT nonsense FROM pairs_v1", cwd=tmp_path))
    assert "nonsense" in line


def test_sql_without_any_store_says_where_it_looked(tmp_path: Path) -> None:
    line = the_one_line(gnomon("sql", "SELECT 1", cwd=tmp_path))
    assert "gnomon.toml" in line
    assert "demo-data" in line


@pytest.mark.parametrize("command", [("sql", "SELECT 1"), ("dashboard",)])
def test_reading_a_folder_that_is_not_there_creates_nothing(command: tuple[str, ...], tmp_path: Path) -> None:
    line = the_one_line(gnomon(*command, "--dir", "nowhere", cwd=tmp_path))
    assert "nowhere" in line
    assert not (tmp_path / "nowhere").exists()


def test_every_command_is_documented(tmp_path: Path) -> None:
    printed = gnomon("--help", cwd=tmp_path).stdout
    commands = ("demo", "run", "config", "mirror", "sql", "migrate", "dashboard")
    for command in commands:
        assert command in printed
        own = gnomon(command, "--help", cwd=tmp_path)
        assert own.returncode == 0
        assert len(own.stdout.split()) > 15, command
