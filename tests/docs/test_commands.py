"""Every command of every page is run as it is printed, or stands in `listed.py` with what runs it instead."""

from __future__ import annotations

import io
import re
import shlex
import sys
import warnings
from pathlib import Path

import click
import pytest

from compare.cli.main import cli, main
from compare.controls import order, pauses
from compare.store.client import Store
from ingest.settings import StoreSettings
from tests.docs import scene as made
from tests.docs.listed import ELSEWHERE, Elsewhere, elsewhere
from tests.docs.pages import PAGES, ROOT, Typed, name, typed
from tests.docs.placeholders import filled, forms

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
Scene = tuple[Path, Store]


def first_seen() -> dict[str, Typed]:
    """Each command once, at the page that is run first."""
    found: dict[str, Typed] = {}
    for page in ORDER:
        for one in typed(page):
            found.setdefault(one.text.removeprefix(".venv/bin/"), one)
    return found


MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
COMMANDS = first_seen()
ALL = {one.text for page in PAGES for one in typed(page)}
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


def ran(text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a `gnomon ...` of the current folder; `> FILE` goes to written/."""
    words = shlex.split(text)[1:]
    file = words[words.index(">") + 1] if ">" in words else None
    sys.stdin = io.StringIO("y\n")
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
        sys.stdin = sys.__stdin__
    out, err = capsys.readouterr()
    if file:
        Path("written").mkdir(exist_ok=True)
        Path("written", file).write_text(out, encoding="utf-8")
    return code, out, err


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


@pytest.mark.parametrize("one", ELSEWHERE, ids=lambda one: one.command)
def test_the_list_of_what_runs_elsewhere_names_commands_and_what_is_there(one: Elsewhere) -> None:
    assert [text for text in ALL if re.fullmatch(one.command, text)]
    for place in one.instead:
        target = re.fullmatch(r"make ([a-z-]+)", place)
        assert re.search(rf"^{target[1]}:", MAKEFILE, re.MULTILINE) if target else (ROOT / place).exists(), (
            place
        )


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
