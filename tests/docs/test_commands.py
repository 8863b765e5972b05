"""Every command of every page is run as it is printed, or stands in `listed.py` with what runs it instead."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from compare.cli.main import cli
from compare.controls import order, pauses
from compare.store.client import Store
from ingest.settings import StoreSettings
from tests.docs import scene as made
from tests.docs.listed import elsewhere
from tests.docs.pages import PAGES, ROOT, Typed, blocks, name, typed
from tests.docs.placeholders import filled, forms
from tests.docs.printed import misprinted, report_lines, reported
from tests.docs.terminal import BIN, in_bash, ran
from tests.fixtures import demo_run

RECIPES = ROOT / "docs" / "recipes.md"
# Last, for the other pages know of one experiment in the store; a replay of the first makes another, and the
# recipes' page has its own.
LAST = [ROOT / "CHANGELOG.md", RECIPES]
ORDER = [*(page for page in PAGES if page not in LAST), *LAST]
# As a page says: 1 hold, or a rollback is called for, or a golden set failed; in each case the scene is so.
EXIT_CODES = (
    (r"gnomon verdict (?!.*--history).*", 1),
    (r"gnomon rollback status", 1),
    (r"gnomon golden run --set core", 1),
)
ACCESS = ROOT / "docs" / "sql-access.md"
SHELL = {one.text for one in typed(ACCESS) if one.line and not one.text.startswith("gnomon ")}
"""Lines of one script."""
CLIENT = """
import os, sys, urllib.parse, urllib.request
given = sys.argv[sys.argv.index("--query") + 1] if "--query" in sys.argv else sys.stdin.read()
bare = "\\n".join(line for line in given.splitlines() if not line.startswith("--"))
for one in filter(None, map(str.strip, bare.split(";"))):
    sql = " ".join(one.split())
    asked = urllib.parse.urlencode({"query": "SELECT formatQuerySingleLine({sql:String})", "param_sql": sql})
    request = urllib.request.Request(f"{os.environ['URL']}/?{asked}")
    request.add_header("X-ClickHouse-Key", os.environ["TOKEN"])
    print("read", urllib.request.urlopen(request).read().decode().strip())
"""
"""Has each statement read by the engine's parser, through the port of the embedded store."""

Scene = tuple[Path, Store]


def first_seen() -> dict[str, Typed]:
    """Each command once, at the page that is run first: in a block if there is one that has it."""
    found: dict[str, Typed] = {}
    for page in ORDER:
        for one in typed(page):
            text = one.text.removeprefix(".venv/bin/")
            if text not in found or (one.line and not found[text].line):
                found[text] = one
    return found


COMMANDS = first_seen()
TO_RUN = {
    page: [text for text, one in COMMANDS.items() if one.page == page and not elsewhere(one.text)]
    for page in ORDER
}


def is_ours(text: str) -> bool:
    return text.startswith("gnomon ")


def only_names(text: str) -> bool:
    """Whether it speaks of a command or an option, with no value that one could type: `gnomon golden add`.

    Raises LookupError or NoSuchOption where the program has no such command or option.
    """
    words = shlex.split(text)[1:]
    found: click.Command = cli
    path = "gnomon"
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        path = f"{path} {words[0]}"
        under = found.get_command(click.Context(cli), words.pop(0))
        if under is None:
            raise LookupError(f"no such command: {path}")
        found = under
    known = {option for one in found.params for option in (*one.opts, *one.secondary_opts)} | {"--help"}
    for word in words:
        if word.startswith("--") and word not in known:
            raise click.NoSuchOption(word)
    return all(word.startswith("-") for word in words)


TOLD: dict[str, str] = {}
"""What the commands printed that were run as they stand."""


def problem(place: Typed, text: str, store: Store, capsys: pytest.CaptureFixture[str]) -> str:
    """What is wrong with a command; empty if it does its job."""
    try:
        is_name = only_names(text) and place.line == 0
    except (LookupError, click.NoSuchOption) as error:
        return str(error)
    code, out, err = ran(filled(text, store), capsys)
    if is_name and code == 2 and ("Usage: gnomon" in err or "requires an argument" in err):
        return ""
    wanted = next((code for pattern, code in EXIT_CODES if re.fullmatch(pattern, text)), 0)
    if code != wanted or not (out + err).strip() or "Traceback" in err:
        return f"exit code {code}, not {wanted}; {out[-300:]!r} {err[-300:]!r}"
    TOLD[text] = out
    return ""


@pytest.mark.parametrize("page", [page for page in ORDER if any(map(is_ours, TO_RUN[page]))], ids=name)
def test_each_command_does_its_job(
    page: Path, scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, store = scene
    monkeypatch.chdir(folder)
    if page == RECIPES:
        made.put_rollout(store, StoreSettings(url=store.where))
    wrong = {}
    for text in filter(is_ours, TO_RUN[page]):
        for form in forms(text):
            told = problem(COMMANDS[text], form, store, capsys)
            if told:
                wrong[f"line {COMMANDS[text].line}: {form}"] = told
    for held in pauses(store):
        order(store, "resume", held.scope, ordered_by="test", reason="")
    assert wrong == {}
    assert misprinted(page, TOLD) == []


def test_the_blocks_of_shell_do_their_job(scene: Scene) -> None:
    """docs/sql-access.md reaches the store with curl and makes a server's roles, block after block.

    No ClickHouse server runs here: in place of `clickhouse-client` the engine's parser reads the statements.
    """
    folder, _ = scene
    (folder / "bin").mkdir()
    client = folder / "bin" / "clickhouse-client"
    client.write_text(f"#!{sys.executable}\n{CLIENT}", encoding="utf-8")
    client.chmod(0o755)
    scripts = [block.text for block in blocks(ACCESS) if block.language == "sh"][1:]
    path = {"PATH": f"{client.parent}:{BIN}:{os.environ['PATH']}"}
    told = in_bash("\n".join(["set -a", *scripts]), folder, path)
    lines = told.splitlines()
    assert lines[0] == "Ok."
    assert int(lines[1]) > 48
    assert lines[2] == '{"a":42}'
    assert lines[3].startswith('"experiment",')
    read = [line.removeprefix("read ") for line in lines if line.startswith("read ")]
    assert len(read) > 30
    assert {line.split()[0] for line in read} == {"CREATE", "GRANT"}


def test_the_code_for_python_reads_the_store(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, store = scene
    monkeypatch.chdir(folder)
    (code,) = (block.text for block in blocks(ACCESS) if block.language == "python")
    names: dict[str, Any] = {}
    exec(code, names)
    names["client"].close()
    rows = store.query("SELECT verdict, count() FROM pairs_v1 GROUP BY verdict").rows
    assert sorted(names["frame"].itertuples(index=False, name=None)) == sorted(rows)


def test_every_command_is_run_or_listed() -> None:
    left = {
        text
        for text, one in COMMANDS.items()
        if not (is_ours(text) or text.startswith("make ") or text in SHELL or elsewhere(one.text))
    }
    assert left == set()


def test_the_checker_refuses_what_the_program_refuses(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, store = scene
    monkeypatch.chdir(folder)
    typed_in_block, in_text = Typed(RECIPES, 7, ""), Typed(RECIPES, 0, "")
    for text, told in (
        ("gnomon verdikt", "no such command"),
        ("gnomon verdict --margn 1%", "No such option"),
        ("gnomon alerts shw 3fa9", "no such command"),
        ("gnomon sql --rows many", "not a valid integer"),
        ("gnomon mirror", "Missing argument"),
        ("gnomon sql @near_ties --set day=7", "has no parameter"),
        ("gnomon sql 'SELECT nothing FROM pairs_v1'", "exit code 2"),
    ):
        assert told in problem(typed_in_block, text, store, capsys)
    assert problem(in_text, "gnomon mirror", store, capsys) == ""
    assert "exit code 2" in problem(in_text, "gnomon verdict --margin 1%", store, capsys)


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md", "docs/reading-the-report.md"])
def test_the_printed_report_is_that_of_the_run_that_the_repository_keeps(page: str, scene: Scene) -> None:
    _, store = scene
    if store.query("SELECT count() FROM pairs WHERE experiment = 'demo-1'").rows == [(0,)]:
        demo_run.insert(store)
    report = reported(store)
    lines = report_lines(ROOT / page)
    assert len(lines) > 8
    # A page may leave the end of a line out.
    assert [line for line in lines if not any(one.startswith(line) for one in report)] == []
