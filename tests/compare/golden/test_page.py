"""docs/golden.md against the program: its example can be imported, its defaults are the settings'."""

from __future__ import annotations

import json
import re
from pathlib import Path

from compare.cli.golden_run import EXIT_FAILED, EXIT_INCOMPLETE
from compare.golden.checks import read_checks
from compare.golden.files import read_line
from ingest.settings_golden import GoldenSettings

PAGE = (Path(__file__).parents[3] / "docs" / "golden.md").read_text(encoding="utf-8")


def test_the_example_of_a_line_can_be_imported() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    case = read_line(example.replace("\n", " ").encode(), "the page")
    assert (case.case_id, case.route, len(case.checks)) == ("refund-1", "log-extract", 1)


def test_every_check_of_the_table_can_be_read() -> None:
    shown = [row.replace("{...}", "{}") for row in re.findall(r"^\| `(\{.*?\})`[,| ]", PAGE, re.MULTILINE)]
    assert len(shown) == 5
    assert [len(read_checks(f"[{one}]")) for one in shown] == [1] * 5
    assert {json.loads(one)["check"] for one in shown} == {"exact", "similarity", "schema", "keys", "pattern"}


def test_its_numbers_are_those_of_the_program() -> None:
    defaults = GoldenSettings()
    assert f"`golden.least_case_score` ({defaults.least_case_score:g})" in PAGE
    assert f"`warn_mean_score` ({defaults.warn_mean_score:g})" in PAGE
    assert f"`fail_mean_score` ({defaults.fail_mean_score:g})" in PAGE
    assert f"| {EXIT_FAILED} | a run failed |" in PAGE
    assert f"| {EXIT_INCOMPLETE} | incomplete" in PAGE
