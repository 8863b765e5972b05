"""`gnomon sql` and `gnomon migrate`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import click

from compare.cli.locate import locate_store, store_options
from compare.cli.output import format_option


@click.command()
@click.argument("statement", required=False)
@store_options
@click.option("--list", "lists_recipes", is_flag=True, help="Name the recipes: question and parameters.")
@click.option("--show", "shows_recipe", is_flag=True, help="Print the recipe's SQL, do not run it.")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter's value, bound by the store; again for each.",
)
@format_option
@click.option(
    "--rows",
    "shown_rows",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="The most rows that a table shows; csv and json are never cut.",
)
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Stop the statement after this many seconds. [default: the store's own limit]",
)
def sql(
    statement: str | None,
    folder: Path | None,
    config_file: Path | None,
    lists_recipes: bool,
    shows_recipe: bool,
    assignments: tuple[str, ...],
    output_format: Literal["table", "csv", "json"],
    shown_rows: int,
    seconds: float | None,
) -> None:
    """Run one SQL statement or recipe, read-only.

    Prints the rows of STATEMENT as they arrive; Ctrl-C cancels it. @NAME runs the recipe of that name
    (--list names them, docs/recipes.md explains them); --set gives the value of a parameter, which stands
    in the SQL as {name:Type}.
    Works while a run or a demo owns the embedded folder: it then asks that process.
    """
    from compare.cli.output import write_all
    from compare.recipes import check_bound, find_recipe, read_assignments, recipe_list, shipped_recipes
    from compare.store.print_rows import printed
    from compare.store.row_stream import stream_rows

    if lists_recipes:
        click.echo(recipe_list(shipped_recipes().values()))
        return
    if statement is None:
        raise click.UsageError("give a statement, or @NAME of a recipe; --list names the recipes")
    given = read_assignments(assignments)
    parameters: Mapping[str, str | None] = given
    if statement.startswith("@"):
        recipe = find_recipe(statement[1:])
        parameters = recipe.bind(given)
        if shows_recipe:
            click.echo(recipe.text, nl=False)
            return
        statement = recipe.statement
    elif shows_recipe:
        raise click.UsageError("--show prints a recipe: give its @NAME")
    else:
        check_bound(statement, given)
    settings = locate_store(folder, config_file)
    with stream_rows(settings, statement, parameters, seconds=seconds) as rows:
        write_all(printed(rows.column_names, rows, output_format, shown_rows=shown_rows))


@click.command()
@store_options
@click.option("--dry-run", is_flag=True, help="Say what would be applied, change nothing.")
@click.option("--sql", "with_sql", is_flag=True, help="Print the statements too.")
def migrate(folder: Path | None, config_file: Path | None, dry_run: bool, with_sql: bool) -> None:
    """Bring the store to this program's schema.

    Numbered migrations first, then the views, then the TTLs of [store.ttl_days].
    Processes that start at once wait for each other; what is up to date is left alone.
    """
    from compare.store import migrate as migrations
    from compare.store.client import open_store
    from compare.store.steps_text import steps_text

    settings = locate_store(folder, config_file)
    with open_store(settings, role="any") as store:
        steps = migrations.plan(store, settings) if dry_run else migrations.apply(store, settings)
    click.echo(steps_text(steps, verb="would apply" if dry_run else "applied", with_sql=with_sql))
