"""The programs of bench/ that pages name and that take seconds; `make bench` runs the others."""

from __future__ import annotations

import pytest

from tests.docs.listed import elsewhere
from tests.docs.pages import PAGES, ROOT, typed
from tests.docs.terminal import in_bash

QUICK = sorted(
    {
        one.text
        for page in PAGES
        for one in typed(page)
        if (entry := elsewhere(one.text)) and "tests/docs/slow_programs.py" in entry.instead
    }
)


@pytest.mark.parametrize("text", QUICK)
def test_a_program_of_the_bench_ends_well(text: str) -> None:
    assert in_bash(text.replace("[seconds] [seed]", "1 11"), ROOT).strip()
