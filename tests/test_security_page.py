"""The table of threats against the tests that it names."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PAGE = (_ROOT / "SECURITY.md").read_text(encoding="utf-8")
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_each_test_that_is_named_exists() -> None:
    named = set(_NAMED.findall(_PAGE))
    assert len(named) > 30
    missing = [
        f"{file}::{test}"
        for file, test in sorted(named)
        if not re.search(rf"^(async )?def {test}\(", (_ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert missing == []


def test_each_threat_names_what_stands_against_it_and_a_test() -> None:
    table = _PAGE.split("| threat |")[1].split("\n\n")[0]
    threats = [line.split("|")[1:-1] for line in table.splitlines()[2:]]
    assert len(threats) > 12
    for row in threats:
        assert len(row) == 3, row
        assert all(cell.strip() for cell in row), row
        assert _NAMED.search(row[2]), row[0]
