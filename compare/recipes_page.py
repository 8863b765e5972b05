"""`docs/recipes.md` from the headers of `sql/queries/`.

python -m compare.recipes_page > docs/recipes.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from compare.recipes import Recipe, shipped_recipes, shown_default
from compare.store.print_table import format_result
from compare.store.row_stream import stream_rows
from ingest.settings import StoreSettings

SHOWN_ROWS = 3
SHOWN_WIDTH = 180
"""An answer that is wider is left out of the page."""

INTRODUCTION = """# SQL recipes

Each file of `sql/queries/` answers one question, from the views `*_v1` only. They ship with the program:

```sh
gnomon sql --list
gnomon sql @p99_kl_by_model
gnomon sql --set days=30 --set experiment=q4-rollout --format csv @p99_kl_by_model
gnomon sql --show @p99_kl_by_model
```

`--set` gives a parameter its value, else the default holds. Values are bound by the store to `{name:Type}`
and never become part of the SQL; a value of the wrong type is the store's error. Times are UTC, written as
`2026-11-29 10:00:00`. `--set` works for a statement of your own too:
`gnomon sql --set n=5 "SELECT * FROM pairs_v1 LIMIT {n:UInt32}"`.

The same text runs in any ClickHouse client: with curl, each parameter goes in the URL as `param_days=7`. No
recipe has a SETTINGS or FORMAT clause, so a read-only token may run them all.

What they keep to:

- **Windows.** `days` and `hours` look back from now, by `mirrored_at` and `ingested_at` both where a row has
  both: a record whose clock ran ahead is as old as its arrival. The lower end moves with the second, so the
  first day of a window is a part of a day.
- **Rates of faults and regressions** leave out the pairs that may move none, as the alerts do: unscored,
  `mirrored` mode, a fault already in the history.
- **Intervals** are of 95 % and hold for one look. Ordered rows come by the interval's lower end, so that
  three pairs do not lead a list of thousands.
- **NULL** means not measured. No recipe returns NaN, and on an empty store each returns no rows.
- **Quantiles** are exact, linear between order statistics; a recipe that rounds the values first says so.
"""


def page(recipes: Iterable[Recipe], answers: Mapping[str, str] | None = None) -> str:
    """The whole page, with a newline at its end; `answers` are tables by the recipe's name."""
    return "\n".join(
        [INTRODUCTION, *(_section(recipe, (answers or {}).get(recipe.name)) for recipe in recipes)]
    )


def read_answers(settings: StoreSettings, recipes: Iterable[Recipe]) -> dict[str, str]:
    """What the store answers with the defaults: the first rows, where there are any and they fit the page."""
    answers = {}
    for recipe in recipes:
        with stream_rows(settings, recipe.statement, recipe.bind({})) as blocks:
            rows = [row for block in blocks for row in block]
        lines = format_result(blocks.column_names, rows[:SHOWN_ROWS], "table").splitlines()[:-1]
        if rows and max(map(len, lines)) <= SHOWN_WIDTH:
            answers[recipe.name] = "\n".join(lines)
    return answers


def _section(recipe: Recipe, answer: str | None) -> str:
    lines = [f"## {recipe.name}", "", recipe.question, "", f"Grain: {recipe.grain}", ""]
    if recipe.parameters:
        lines += ["| parameter | type | default | meaning |", "| --- | --- | --- | --- |"]
        for one in recipe.parameters:
            lines.append(f"| `{one.name}` | `{one.type}` | `{shown_default(one)}` | {one.meaning} |")
        lines.append("")
    if recipe.note:
        lines += [recipe.note, ""]
    lines += ["```sh", recipe.example, "```", ""]
    if answer is not None:
        lines += ["First rows of a demo, with the defaults:", "", "```", answer, "```", ""]
    return "\n".join(lines)


def main() -> None:
    """Print the page."""
    recipes = list(shipped_recipes().values())
    answers = {}
    if len(sys.argv) > 1:
        answers = read_answers(StoreSettings(url=f"chdb://{Path(sys.argv[1]).absolute()}"), recipes)
    print(page(recipes, answers), end="")


if __name__ == "__main__":
    main()
