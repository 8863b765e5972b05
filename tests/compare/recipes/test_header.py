"""Reading a recipe's header: what is refused, and in which words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compare.recipes import check_bound, find_recipe, parse_recipe, read_assignments, shipped_recipes
from compare.recipes_page import page
from ingest.errors import FatalError

GOOD = """-- Question: How many
--   are there?
-- Grain: one row.
-- Parameter: at Nullable(DateTime64(3, 'UTC')) = NULL; a moment
-- Parameter: name String = 'a'; a name;
--   and more
-- Note: first.
-- Example: gnomon sql @good
SELECT count() -- {not:UInt8} in a comment
FROM pairs_v1
WHERE mirrored_at > {at:Nullable(DateTime64(3, 'UTC'))} AND route = {name:String}
"""


def test_a_header_is_read_with_its_continued_lines() -> None:
    recipe = parse_recipe("good", GOOD)
    assert recipe.question == "How many are there?"
    assert recipe.note == "first."
    assert [(p.name, p.type, p.default, p.meaning) for p in recipe.parameters] == [
        ("at", "Nullable(DateTime64(3, 'UTC'))", None, "a moment"),
        ("name", "String", "a", "a name; and more"),
    ]
    assert recipe.statement.startswith("SELECT count()")
    assert recipe.bind({"name": "x=y"}) == {"at": None, "name": "x=y"}
    assert parse_recipe("good", GOOD.replace("\n", "\r\n")) == recipe


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("-- Grain: one row.\n", "", "needs one line `-- Grain: ...`"),
        ("-- Note: first.", "-- Remark: first.", "line 7: not a line of a recipe's header"),
        ("= 'a'; a name", "= a; a name", "a parameter is `name Type = default; meaning`"),
        ("name String", "name UInt8", "disagree about {name:String}, {name:UInt8}"),
        ("AND route = {name:String}", "", "disagree about {name:String}"),
        ("-- Note: first.", "-- Parameter: name String = 'b'; again", "a parameter is declared twice"),
    ],
)
def test_a_file_that_is_no_recipe_is_refused(old: str, new: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(FatalError) as caught:
        parse_recipe("good", GOOD.replace(old, new))
    assert words in str(caught.value)
    assert str(caught.value).startswith("sql/queries/good.sql")


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(
        FatalError, match="there is no recipe @p99_kl_by_modle: did you mean @p99_kl_by_model"
    ):
        find_recipe("p99_kl_by_modle")
    with pytest.raises(FatalError, match="there is no recipe @zzz: `gnomon sql --list` names"):
        find_recipe("zzz")
    recipe = find_recipe("p99_kl_by_model")
    with pytest.raises(FatalError, match="has no parameter 'dayz': did you mean days"):
        recipe.bind({"dayz": "7"})
    with pytest.raises(FatalError, match="has no parameter 'q': it has experiment, days"):
        recipe.bind({"q": "7"})


def test_assignments_are_split_at_the_first_sign() -> None:
    assert read_assignments(["a=1", "b=x=y", "a=2", "c="]) == {"a": "2", "b": "x=y", "c": ""}
    for wrong in ("a", "=1"):
        with pytest.raises(FatalError, match="write it as --set name=value"):
            read_assignments([wrong])


def test_a_value_that_would_not_be_bound_is_refused() -> None:
    check_bound("SELECT {n:UInt8}, {at:DateTime64(3, 'UTC')}", {"n": "255", "at": "2026-01-01 00:00:00"})
    # The client would paste it into the text: nothing here asks the server to bind it.
    with pytest.raises(FatalError, match="the statement has no parameter {n:Type}"):
        check_bound("SELECT %(n)s -- {n:UInt8}", {"n": "1"})
    with pytest.raises(FatalError, match="^n: a whole number from 0 to 255, not '256'$"):
        check_bound("SELECT {n:UInt8}", {"n": "256"})


def test_the_page_is_that_of_the_headers() -> None:
    shipped = Path(__file__).parents[3] / "docs" / "recipes.md"
    text = shipped.read_text(encoding="utf-8")
    answers = re.compile(r"First rows of a demo, with the defaults:\n\n```\n.*?\n```\n\n?", re.DOTALL)
    assert len(answers.findall(text)) >= 19
    assert answers.sub("", text).rstrip() == page(shipped_recipes().values()).rstrip()
