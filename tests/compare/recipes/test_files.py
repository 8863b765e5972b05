"""Every recipe: a header, one SELECT on views, bound parameters, a test of its answer, an empty store."""

from __future__ import annotations

import importlib
import re
from datetime import timedelta
from pathlib import Path

import pytest

from compare.recipes import Recipe, shipped_recipes
from compare.store import Store, migrate
from compare.store.reader_rules import why_not_read_only
from compare.store.row_stream import stream_rows
from compare.store.sql_text import format_at_end, split_statements, words_of
from tests.compare.recipes.world import NOON, World

RECIPES = shipped_recipes()
_HERE = Path(__file__).parent
_SOURCE = re.compile(r"(?<!ARRAY )\b(?:FROM|JOIN)\s+([a-z]\w*)")
_SETTINGS = re.compile(r"\bSETTINGS \w+ =")
_WITH_NAME = re.compile(r"\b(\w+)\s+AS\s+\(")


def test_there_are_enough_of_them() -> None:
    assert len(RECIPES) >= 22


def test_every_recipe_has_a_test_of_its_answer() -> None:
    modules = [importlib.import_module(f"{__package__}.{path.stem}") for path in _HERE.glob("test_*.py")]
    tests = {name for module in modules for name in vars(module)}
    assert [name for name in RECIPES if f"test_{name}" not in tests] == []


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_it_is_one_reading_statement_without_settings_or_format(recipe: Recipe) -> None:
    assert len(split_statements(recipe.statement)) == 1
    assert why_not_read_only(recipe.statement) is None
    assert not _SETTINGS.search(" ".join(words_of(recipe.statement)))
    assert format_at_end(recipe.statement) is None
    assert recipe.statement.isascii()


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_it_reads_views_only(recipe: Recipe) -> None:
    sources = set(_SOURCE.findall(recipe.statement)) - set(_WITH_NAME.findall(recipe.statement))
    assert sources
    assert sources <= set(migrate.shipped_views())


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_it_bounds_ingested_at_from_below_only(recipe: Recipe) -> None:
    # An upper bound would bring back old versions of rows: the days are pruned before FINAL.
    assert not re.search(r"\bingested_at\s*(<|=|BETWEEN\b|IN\b)", recipe.statement)


def test_older_days_are_not_read(world: World) -> None:
    for days in range(4):
        world.pair(at=NOON - timedelta(days=days))
        world.flush()
    explained = f"EXPLAIN indexes = 1 {RECIPES['p99_kl_by_model'].statement}"
    with stream_rows(world.settings, explained, RECIPES["p99_kl_by_model"].bind({"days": "2"})) as rows:
        text = "\n".join(row[0] for block in rows for row in block)
    found = re.search(r"Parts: (\d+)/(\d+)", text)
    assert found is not None, text
    assert int(found[1]) < int(found[2])


def test_a_pair_that_came_again_on_another_day_counts_once_and_as_the_last(world: World) -> None:
    for days, kl in ((3, 5.0), (1, 0.5)):
        world.pair(offset=0, at=NOON - timedelta(days=days), scores={"kl_forced_mean_nats": kl})
        world.flush()
    for window in ("30", "3"):
        (row,) = world.ask("p99_kl_by_model", days=window)
        assert (row["pairs"], row["kl_p99_nats"]) == (1, 0.5)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_its_header_is_for_people(recipe: Recipe) -> None:
    assert recipe.question.endswith("?")
    assert recipe.grain.endswith(".")
    assert recipe.example.startswith(f"gnomon sql @{recipe.name}")
    named = set(re.findall(r'--set "?(\w+)=', recipe.example))
    assert named <= {parameter.name for parameter in recipe.parameters}
    for parameter in recipe.parameters:
        if parameter.type == "String":
            assert parameter.default is not None
    assert max(map(len, recipe.text.splitlines())) <= 112


@pytest.mark.parametrize("name", RECIPES)
def test_the_real_parser_takes_it_and_an_empty_store_answers(empty_store: Store, name: str) -> None:
    statement = RECIPES[name].statement
    formatted = empty_store.query("SELECT formatQuery({sql:String})", {"sql": statement}).rows[0][0]
    assert formatted.startswith(("SELECT", "WITH"))
    assert empty_store.query(statement, RECIPES[name].bind({})).rows == []
