"""`gnomon floor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli.locate import locate_store, store_options
from compare.cli.output import format_option

if TYPE_CHECKING:
    from compare.floor import Dimension


@click.command()
@click.option("--experiment", required=True, help="The experiment, as in experiments_v1.")
@click.option("--candidate", help="The candidate endpoint's name. [default: the only one]")
@click.option(
    "--by",
    type=click.Choice(["route", "tenant", "language", "prompt_length", "kind", "served_model"]),
    help="One table row for each value of it. [default: the whole traffic]",
)
@click.option("--metric", "metrics", multiple=True, help="Only this metric; may be given again.")
@format_option
@store_options
def floor(
    experiment: str,
    candidate: str | None,
    by: Dimension | None,
    metrics: tuple[str, ...],
    output_format: str,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Show each score beside its noise floor.

    The floor is the same endpoint asked twice: under it no difference may be blamed on the candidate.
    `excess` is what is left, with a 95 % interval; an interval that holds 0 shows no difference. All numbers
    are distances: a score where higher is better comes with its sign turned.
    """
    import msgspec

    from compare.floor import Excess, read_excess
    from compare.ship.scope import find_candidate
    from compare.store.client import open_store
    from compare.store.print_table import format_result

    with open_store(locate_store(folder, config_file), role="reader") as store:
        candidate, _ = find_candidate(store, experiment, candidate)
        found = read_excess(store, experiment, candidate, by=by, metrics=metrics)
    if not found:
        raise click.ClickException(
            f"no noise pairs of experiment {experiment}, candidate {candidate}: see"
            " `gnomon sql 'SELECT experiment, candidate, count() FROM noise_pairs_v1 GROUP BY ALL'`"
        )
    columns = [name for name in Excess.__struct_fields__ if by or name != "slice"]
    rows = [[msgspec.structs.asdict(excess)[name] for name in columns] for excess in found]
    click.echo(format_result(columns, rows, output_format))  # type: ignore[arg-type]
