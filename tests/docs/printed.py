"""The form of what a page prints under a command."""

from __future__ import annotations

import re


def table_head(text: str) -> list[str] | None:
    """The names of the columns, where the text begins with a table; None where it does not."""
    lines = text.splitlines()
    if len(lines) < 2 or not re.fullmatch(r"-+(?: +-+)*", lines[1].strip()):
        return None
    return lines[0].split()


def beginnings(text: str) -> list[str]:
    """How each line of a text begins: its first word or two, without what a run makes anew."""
    found = []
    for line in text.splitlines():
        words = [word for word in line.split() if not re.search(r"\d|…|\.\.\.", word)]
        if words:
            found.append(" ".join(words[:2]))
    return found
