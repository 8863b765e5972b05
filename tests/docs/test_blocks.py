"""What a page tells one to type: commands parse, settings load, SQL runs on a real empty store."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from compare.cli.main import cli
from compare.recipes import find_recipe, read_assignments
from compare.store import Store, open_store
from ingest.load_settings import load_settings
from tests.docs.pages import PAGES, Command, blocks, commands, name
from tests.fixtures.stores import MigratedAt

COMMANDS = {page: list(commands(page)) for page in PAGES}
# Its SQL has parameters; tests/compare/recipes runs each recipe.
RECIPES = "docs/recipes.md"

LEAST: dict[str, Any] = {
    "experiment": {
        "name": "e",
        "reference": "full",
        "candidates": ["awq"],
        "models": {"*": {"full": "m", "awq": "m"}},
    },
    "endpoints": {"full": {"url": "http://a"}, "awq": {"url": "http://b"}},
}
"""Around a block that shows a part of the settings."""


def parsed(command: Command) -> tuple[str, dict[str, Any]]:
    """The path of a command and its options. Raises a ClickException, or LookupError for no such command."""
    words = list(command.words[1:])
    found: click.Command = cli
    path: list[str] = []
    context = click.Context(cli)
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        path.append(words.pop(0))
        under = found.get_command(context, path[-1])
        if under is None:
            raise LookupError(f"no such command: {' '.join(path)}")
        found = under
    if isinstance(found, click.Group):
        return " ".join(path), {}
    return " ".join(path), found.make_context(path[-1], words).params


def problem(command: Command) -> str:
    """What is wrong with a command; empty if nothing is."""
    try:
        parsed(command)
    except click.exceptions.Exit:
        # An option that acts at once, such as --help.
        return ""
    except click.NoSuchOption as error:
        return error.format_message()
    except click.UsageError as error:
        # The text may name a command without all that it needs, a block may not. A page's files are not here.
        told = error.format_message()
        return told if command.whole and "does not exist" not in told else ""
    except LookupError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("page", [page for page in PAGES if COMMANDS[page]], ids=name)
def test_each_command_is_one_that_the_program_takes(page: Path) -> None:
    wrong = {f"line {one.line}: {' '.join(one.words)}": problem(one) for one in COMMANDS[page]}
    assert {line: found for line, found in wrong.items() if found} == {}


def test_the_checker_refuses_what_the_program_refuses() -> None:
    page = PAGES[0]
    for words, told in (
        ("gnomon verdikt", "no such command"),
        ("gnomon verdict --margn 1%", "No such option"),
        ("gnomon alerts shw 3fa9", "no such command"),
        ("gnomon sql --rows many", "not a valid integer"),
        ("gnomon mirror", "Missing argument"),
    ):
        assert told in problem(Command(page, 1, tuple(words.split()), whole=True))
    assert problem(Command(page, 1, ("gnomon", "mirror"), whole=False)) == ""


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    both = under | over
    for key in under.keys() & over.keys():
        if isinstance(under[key], dict) and isinstance(over[key], dict):
            both[key] = _merged(under[key], over[key])
    return both


def _toml(value: Any) -> str:
    """A value of TOML, tables in braces."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


@pytest.mark.parametrize(
    "block",
    [block for page in PAGES for block in blocks(page) if block.language == "toml"],
    ids=lambda block: f"{name(block.page)}:{block.line}",
)
def test_settings_load(block: Any, tmp_path: Path) -> None:
    file = tmp_path / "gnomon.toml"
    file.write_text(block.text, encoding="utf-8")
    tree = tomllib.loads(block.text)
    if "experiment" not in tree or "endpoints" not in tree:
        tree = _merged(LEAST, tree)
        file.write_text("\n".join(f"{key} = {_toml(value)}" for key, value in tree.items()), encoding="utf-8")
    # Secrets that a page says are set by variables.
    environ = {"GNOMON_STORE_PASSWORD": "secret"}
    if "redaction" in tree:
        environ["GNOMON_REDACTION_KEY"] = "of sixteen and more characters"
    if "slack" in tree.get("notify", {}):
        environ["GNOMON_SINK_ONCALL_SECRET_URL"] = "https://hooks.example/x"
    assert load_settings(file, environ).experiment.candidates


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Iterator[Store]:
    with open_store(migrated_at(tmp_path_factory.mktemp("docs") / "store"), role="owner") as opened:
        yield opened


def test_sql_runs_on_an_empty_store(store: Store) -> None:
    ran = 0
    for page in PAGES:
        if name(page) == RECIPES:
            continue
        for block in blocks(page):
            if block.language == "sql":
                for statement in filter(None, map(str.strip, block.text.split(";\n"))):
                    store.query(statement.removesuffix(";"))
                    ran += 1
    for command in (one for page in PAGES for one in COMMANDS[page] if one.words[1:2] == ("sql",)):
        _, options = parsed(command)
        text = options.get("statement")
        if not text or not command.whole:
            continue
        given = read_assignments(options["assignments"])
        if text.startswith("@"):
            recipe = find_recipe(text[1:])
            store.query(recipe.statement, recipe.bind(given))
        else:
            store.query(text, given)
        ran += 1
    assert ran > 20
