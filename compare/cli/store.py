"""`gnomon sql` and `gnomon migrate`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from compare.cli.locate import locate_store, store_options
from compare.cli.output import format_option

if TYPE_CHECKING:
    from ingest.settings import StoreSettings


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
    with ExitStack() as stack:
        # A new folder holds nothing: what would be done is found out in one that goes away.
        place = stack.enter_context(_elsewhere(settings)) if dry_run and _is_new(settings) else settings
        store = stack.enter_context(open_store(place, role="any"))
        steps = migrations.plan(store, settings) if dry_run else migrations.apply(store, settings)
    click.echo(steps_text(steps, verb="would apply" if dry_run else "applied", with_sql=with_sql))


def _is_new(settings: StoreSettings) -> bool:
    """Whether the store is an embedded one whose folder is not there yet, or is empty."""
    folder = Path(settings.url.removeprefix("chdb://"))
    if not settings.url.startswith("chdb://"):
        return False
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))


@contextmanager
def _elsewhere(settings: StoreSettings) -> Iterator[StoreSettings]:
    """The settings, with an empty folder of the temporary ones."""
    import msgspec

    with tempfile.TemporaryDirectory(prefix="gnomon-dry-run-") as folder:
        yield msgspec.structs.replace(settings, url=f"chdb://{folder}")
