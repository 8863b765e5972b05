"""`gnomon sql` on a real embedded store, as a person runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compare.store import Store, open_store
from ingest.settings import StoreSettings
from tests.compare.cli.test_errors import GNOMON, gnomon, the_one_line
from tests.fixtures.stores import MigratedAt

ENDLESS = "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Path:
    made = tmp_path_factory.mktemp("sql") / "store"
    migrated_at(made)
    return made


@pytest.fixture(scope="module")
def owner(folder: Path) -> Iterator[Store]:
    """This process owns the folder, so that each command is quick; one test opens it itself."""
    with open_store(StoreSettings(url=f"chdb://{folder}"), role="owner") as store:
        yield store


def test_a_table_shows_its_first_rows_and_counts_the_others(owner: Store, folder: Path) -> None:
    sql = "SELECT number AS n, unhex('ff00') AS b, map('k', unhex('fe')) AS m FROM numbers(300000)"
    done = gnomon("sql", "--dir", folder, "--rows", "2", sql, cwd=folder)
    assert done.stdout.splitlines() == [
        "n  b       m",
        "-  ------  -------------",
        '0  0xff00  {"k": "0xfe"}',
        '1  0xff00  {"k": "0xfe"}',
        "(2 rows)",
        "299998 more rows are not shown: --rows N shows more, --format csv all",
    ]


def test_csv_and_json_are_whole(owner: Store, folder: Path) -> None:
    done = gnomon("sql", "--dir", folder, "--format", "csv", "SELECT number FROM numbers(150000)", cwd=folder)
    assert done.stdout == "\n".join(["number", *map(str, range(150_000)), ""])
    for count, text in ((0, "[]\n"), (2, '[\n  {\n    "a": 0\n  },\n  {\n    "a": 1\n  }\n]\n')):
        sql = f"SELECT number AS a FROM numbers({count})"
        assert gnomon("sql", "--dir", folder, "--format", "json", sql, cwd=folder).stdout == text


def test_a_timeout_is_one_line(owner: Store, folder: Path) -> None:
    line = the_one_line(gnomon("sql", "--dir", folder, "--timeout", "0.3", ENDLESS, cwd=folder))
    assert "Timeout exceeded" in line


@pytest.mark.parametrize("sql", ["DROP TABLE pairs", "SELECT file('x')", "SELECT 1 FORMAT CSV", "SELEC 1"])
def test_what_cannot_be_run_is_one_line(owner: Store, folder: Path, sql: str) -> None:
    assert the_one_line(gnomon("sql", "--dir", folder, sql, cwd=folder)).startswith("gnomon: store ")


def test_a_full_disk_and_a_closed_pipe_are_one_line(owner: Store, folder: Path) -> None:
    sql = "SELECT number FROM numbers(3000000)"
    command = [str(GNOMON), "sql", "--dir", str(folder), "--format", "csv", sql]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == "gnomon: standard output cannot be written: No space left on device\n"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "number\n"
        process.stdout.close()
        assert process.stderr.read() == "gnomon: standard output cannot be written: Broken pipe\n"


def test_ctrl_c_cancels_the_statement_in_the_store(owner: Store, folder: Path) -> None:
    running = (
        "SELECT count() FROM system.processes WHERE query LIKE '%1000000000000)%' AND query NOT LIKE '%LIKE%'"
    )
    command = [str(GNOMON), "sql", "--dir", str(folder), ENDLESS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while owner.query(running).rows == [(0,)]:
            assert time.monotonic() < deadline
        os.kill(process.pid, signal.SIGINT)
        _, words = process.communicate(timeout=60)
    assert (process.returncode, words.strip()) == (130, "gnomon: interrupted")
    while owner.query(running).rows != [(0,)]:
        assert time.monotonic() < deadline


def test_a_folder_that_is_no_store_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert "holds no store" in the_one_line(gnomon("sql", "--dir", tmp_path, "SELECT 1", cwd=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
