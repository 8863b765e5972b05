"""The form of what a page prints under a command, held against what the command prints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from rich.console import Console

from compare.demo.render import WIDTH, render
from compare.demo.report import read_report
from compare.store.client import Store
from tests.docs.pages import Block, blocks, is_shell, uncommented


def table_head(text: str) -> list[str] | None:
    """The names of the columns, where the text begins with a table; None where it does not."""
    lines = text.splitlines()
    if len(lines) < 2 or not re.fullmatch(r"-+(?: +-+)*", lines[1].strip()):
        return None
    return lines[0].split()


def first_words(text: str) -> list[str]:
    """The first word of each line."""
    return [line.split()[0] for line in text.splitlines() if line.strip()]


def misprinted(page: Path, told: Mapping[str, str]) -> list[str]:
    """Where a page prints another form than `told`, by command. Commands that are not in it are passed over.

    A table is to have the same columns; what stands under `$ COMMAND` the same first word on each line.
    """
    wrong = []
    before: list[Block] = []
    for block in blocks(page):
        if block.text.startswith("$ "):
            command, _, answer = block.text.removeprefix("$ ").partition("\n")
            if command in told and first_words(told[command]) != first_words(answer):
                wrong.append(f"line {block.line}: {first_words(told[command])}")
        elif is_shell(block):
            before = [block]
            continue
        head = table_head(block.text)
        commands = [uncommented(line) for shell in before for line in shell.text.splitlines()]
        heads = [table_head(told[one]) for one in commands if one in told]
        if head and heads and head not in heads:
            wrong.append(f"line {block.line}: none of {heads}")
    return wrong


def reported(store: Store) -> list[str]:
    """The lines of the report of experiment `demo-1`, as `plain` makes them."""
    report = read_report(
        store,
        "demo-1",
        folder="demo-data",
        tolerated_rate=0.02,
        pairs_between_false_alarms=1_000,
        seconds=336.0,
    )
    out = StringIO()
    render(report, Console(file=out, width=WIDTH, highlight=False))
    return [plain(line) for line in out.getvalue().splitlines()]


def report_lines(page: Path) -> list[str]:
    """The lines of the report that a page prints, as `plain` makes them."""
    texts = [block.text for block in blocks(page) if block.language == "" and not is_shell(block)]
    return [plain(line) for text in texts for line in text.splitlines() if plain(line)]


def plain(line: str) -> str:
    """A line without rules, what was left out of it, and the day of a run."""
    return " ".join(re.sub(r"\d{4}-\d\d-\d\d|─|\.\.\.", "", line).split())
