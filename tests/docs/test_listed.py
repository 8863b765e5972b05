"""The list of commands that are run elsewhere, and what can be said of such commands without running them."""

from __future__ import annotations

import re
import shlex
import tomllib
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
import yaml

from compare.cli.main import cli
from tests.docs.listed import ELSEWHERE, Elsewhere, elsewhere
from tests.docs.pages import PAGES, ROOT, blocks, is_shell, name, typed
from tests.docs.terminal import in_bash

ALL = sorted({one.text for page in PAGES for one in typed(page)})
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def such(pattern: str) -> list[str]:
    """The commands that match a pattern at their beginning; there are some."""
    found = [text for text in ALL if re.match(pattern, text)]
    assert found, pattern
    return found


@pytest.mark.parametrize("one", ELSEWHERE, ids=lambda one: one.command)
def test_an_entry_matches_a_command_and_names_what_is_there(one: Elsewhere) -> None:
    assert [text for text in ALL if re.fullmatch(one.command, text)]
    for place in one.instead:
        target = re.fullmatch(r"make ([a-z-]+)", place)
        if target:
            assert re.search(rf"^{target[1]}:", MAKEFILE, re.MULTILINE), place
        else:
            assert (ROOT / place).exists(), place


def test_the_program_takes_what_is_run_elsewhere() -> None:
    wrong = {}
    for text in such(r"(\.venv/bin/)?gnomon "):
        if elsewhere(text):
            words = shlex.split(text)[1:]
            context = click.Context(cli)
            command = cli.get_command(context, words[0])
            assert command is not None, text
            try:
                command.make_context(words[0], words[1:], parent=context)
            except click.UsageError as error:
                wrong[text] = error.format_message()
    assert wrong == {}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_command_hides_in_a_block_of_something_else(page: Path) -> None:
    others = [block for block in blocks(page) if not is_shell(block) and not block.text.startswith("$ ")]
    hidden = [
        line for block in others for line in block.text.splitlines() if re.match(r"(\$ |gnomon [a-z])", line)
    ]
    assert hidden == []


@pytest.mark.parametrize("text", such(r"make (?!secrets &&)"))
def test_make_knows_the_target(text: str) -> None:
    """Without running its recipe: `make test` is what runs this test."""
    assert in_bash(text.replace("make", "make -n", 1), ROOT)


@pytest.mark.parametrize("text", such(r"python -m "))
def test_a_module_that_is_run_is_there_and_takes_the_options(text: str) -> None:
    words = shlex.split(text)
    if words[2] == "sglang.launch_server":
        return
    found = find_spec(words[2])
    assert found is not None and found.origin is not None
    source = Path(found.origin).read_text(encoding="utf-8")
    assert "__main__" in source
    options = [word for word in words[3:] if word.startswith("--")]
    assert [one for one in options if f'"{one}"' not in source] == []
    if words[3:] and not options:
        assert "sys.argv" in source


def test_what_pip_installs_is_an_extra_or_a_pin() -> None:
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    for text in such("pip install ."):
        for word in shlex.split(text)[2:]:
            extra = re.fullmatch(r"(?:\.|gnomon)\[(\w+)\]", word)
            if extra:
                assert extra[1] in PROJECT["optional-dependencies"], text
            elif word not in (".", "gnomon", "--no-deps"):
                assert word in pinned or word in MAKEFILE, text


def test_profiles_and_files_of_containers_are_there() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    profiles = {profile for service in services.values() for profile in service.get("profiles", [])}
    asked = {one for text in such(".*docker") for one in re.findall(r"--profile (\w+)", text)}
    assert asked and asked <= profiles
    files = [file for text in such("kubectl") for file in re.findall(r"-f (\S+)", text)]
    assert len(files) > 5
    folder = ROOT / "deploy" / "kubernetes"
    for file in files:
        # The reader's own are made of the examples.
        own = re.fullmatch(r"my-(\w+)\.yaml", file)
        assert (folder / f"{own[1]}.example.yaml" if own else ROOT / file).is_file(), file


def test_each_folder_of_tests_that_is_named_is_there() -> None:
    for text in such(r"\.venv/bin/pytest"):
        assert all((ROOT / word).exists() for word in shlex.split(text)[1:] if "/" in word), text
