"""`gnomon sql @name` as a person runs it, on a store that another process owns and on a free folder."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from compare.recipes import shipped_recipes
from compare.store import Store, open_store
from compare.writer import Writer
from ingest.settings import StoreSettings
from tests.compare import batches
from tests.compare.cli.test_errors import gnomon, the_one_line
from tests.fixtures.stores import MigratedAt


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Path:
    made = tmp_path_factory.mktemp("recipes") / "store"
    migrated_at(made)
    return made


@pytest.fixture(scope="module")
def owner(folder: Path) -> Iterator[Store]:
    with open_store(StoreSettings(url=f"chdb://{folder}"), role="owner") as store:
        Writer(store, threading.Event()).write(batches.batch(batches.compared(0), batches.compared(1)))
        yield store


def test_the_list_names_question_and_parameters_without_a_store(tmp_path: Path) -> None:
    lines = gnomon("sql", "--list", cwd=tmp_path).stdout.splitlines()
    recipes = shipped_recipes()
    assert [line[1:] for line in lines if line.startswith("@")] == list(recipes)
    at = lines.index("@p99_kl_by_model")
    assert lines[at + 1].strip() == recipes["p99_kl_by_model"].question
    assert lines[at + 2].split() == ["experiment=''", "days=7"]


def test_show_prints_the_file(tmp_path: Path) -> None:
    done = gnomon("sql", "--show", "@near_ties", cwd=tmp_path)
    assert done.stdout == shipped_recipes()["near_ties"].text


def test_a_recipe_runs_with_its_defaults_and_with_values(owner: Store, folder: Path) -> None:
    def asked(*options: str) -> list[dict[str, str]]:
        done = gnomon("sql", "--dir", folder, "--format", "csv", *options, "@p99_kl_by_model", cwd=folder)
        assert done.returncode == 0, done.stderr
        return list(csv.DictReader(io.StringIO(done.stdout)))

    (row,) = asked()
    assert (row["experiment"], row["pairs"], row["kl_p99_nats"]) == ("e", "2", "0.125")
    assert asked("--set", "experiment=e", "--set", "days=30") == [row]
    assert asked("--set", "experiment=x' OR 1 = 1 --") == []


def test_a_moment_that_is_not_given_is_null(owner: Store, folder: Path) -> None:
    for options in ((), ("--set", "at=2026-01-01 00:00:00")):
        done = gnomon("sql", "--dir", folder, *options, "@served_before_after", cwd=folder)
        assert done.returncode == 0, done.stderr


def test_a_statement_takes_values_too(owner: Store, folder: Path) -> None:
    done = gnomon("sql", "--dir", folder, "--set", "n=41", "SELECT {n:UInt8} + 1 AS a", cwd=folder)
    assert done.stdout.splitlines()[2] == "42"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["@near_tie"], "there is no recipe @near_tie: did you mean @near_ties?"),
        (["--set", "dayz=1", "@near_ties"], "recipe @near_ties has no parameter 'dayz': did you mean days?"),
        (["--set", "days", "@near_ties"], "--set 'days': write it as --set name=value"),
        (["--set", "days=soon", "@near_ties"], "days: a whole number from 0 to 4294967295, not 'soon'"),
        (["--set", "n=1", "SELECT 1"], "--set n: the statement has no parameter {n:Type}"),
        (["SELECT {n:UInt8}"], "Substitution `n` is not set"),
    ],
)
def test_what_is_wrong_is_one_line(owner: Store, folder: Path, arguments: list[str], words: str) -> None:
    assert words in the_one_line(gnomon("sql", "--dir", folder, *arguments, cwd=folder))


def test_without_a_statement_the_command_says_what_to_give(tmp_path: Path) -> None:
    for arguments in ([], ["--show", "SELECT 1"]):
        done = gnomon("sql", *arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert "@NAME" in done.stderr
