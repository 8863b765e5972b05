"""The shape of docs/calibration.md, and the arithmetic of the program that writes its table."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from bench.calibration import BEGIN, CANDIDATES, COLUMNS, END, PAGE, Row, interval_of, table, written


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_page_has_the_table_that_the_program_writes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    between = page.partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    said, _, head, rule, *rows = between
    assert said.startswith("`python -m bench.calibration") and "cores" in said and "true KL" in said
    assert cells(head) == list(COLUMNS)
    assert set(cells(rule)) == {"---"}
    assert [cells(row)[0] for row in rows] == [side.label for side in CANDIDATES.values()]
    for row in rows:
        one = dict(zip(COLUMNS, cells(row), strict=True))
        low, high = (float(part) for part in one["95 %"].split(" to "))
        assert low <= float(one["mean KL"]) <= high
        assert float(one["bound there"]) <= float(one["true KL"])
        assert 0.0 <= float(one["top-1 agreement"].rstrip("%")) <= 100.0
    # The same file measured against itself.
    same = dict(zip(COLUMNS, cells(rows[0]), strict=True))
    assert (same["mean KL"], same["p99 KL"], same["true KL"]) == ("0", "0", "0")


def test_the_table_goes_between_the_marks() -> None:
    row = Row(
        name="q5_0",
        positions=100,
        answers=4,
        kl=0.05,
        interval=(0.04, 0.06),
        excess=0.048,
        p99=0.5,
        true_kl=0.06,
        true_positions=12,
        bound_there=0.05,
        agreement=0.9,
        perplexity=1.1,
        rms=0.1,
        differing=0.75,
        faults=(0, 2),
    )
    page = written(f"before {BEGIN}\nold\n{END} after", table([row], "command"))
    assert page.startswith(f"before {BEGIN}\n`command`, ") and page.endswith(f"|\n{END} after")
    assert (
        "| Q5_0 | 0.0500 | 0.0400 to 0.0600 | 0.0480 | 0.5000 | 0.0600 | 0.0500 | 90.0% | 1.1000 | 0.1000 "
        "| 75% | 0, 2 |" in page
    )
    assert "old" not in page
    with pytest.raises(ValueError, match="lacks"):
        written("no marks", "text")


def test_the_interval_draws_answers_and_not_positions() -> None:
    random = np.random.default_rng(1)
    means = random.gamma(4.0, 0.05, 40)
    counts = np.full(40, 100.0)
    low, high = interval_of(means * counts, counts)
    # With equal counts it is the mean of 40 numbers: Student's t interval, about.
    expected = scipy.stats.t.interval(0.95, 39, means.mean(), scipy.stats.sem(means))
    assert (low, high) == pytest.approx(expected, rel=0.06)
    assert interval_of(np.zeros(5), np.ones(5)) == (0.0, 0.0)
