"""The page of faults against the tests that it names."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PAGE = (_ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_ROWS = [
    line.split("|")[1:-1]
    for line in _PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| ---")
]


def test_each_test_that_is_named_exists() -> None:
    named = set(_NAMED.findall(_PAGE))
    assert len(named) > 30
    sources = {file: (_ROOT / file).read_text(encoding="utf-8") for file, _ in named}
    missing = [
        f"{file}::{test}"
        for file, test in sorted(named)
        if not re.search(rf"^(async )?def {test}\(|^{test} = ", sources[file], re.MULTILINE)
    ]
    assert missing == []


def test_each_row_says_what_happens_what_is_promised_and_which_test_shows_it() -> None:
    faults = [row for row in _ROWS if row[0].strip() != "fault"]
    assert len(faults) > 20
    for row in faults:
        assert len(row) == 4, row
        assert all(cell.strip() for cell in row), row
        assert _NAMED.search(row[3]), row[0]
