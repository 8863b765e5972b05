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
    `candidate` and `floor` are means over the same requests, those that were asked twice: the score itself
    where `better` says higher or lower, else how far it is from no difference (`none`). `excess` is how much
    worse the candidate is than its floor, with a 95 % interval; one that holds 0 shows no difference.
    """
    import msgspec

    from compare.floor import Excess, compared_metrics, read_excess
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
    directions = {spec.name: spec.direction for spec in compared_metrics()}
    fields = [name for name in Excess.__struct_fields__ if by or name != "slice"]
    columns = [fields[0], "better", *fields[1:]]
    rows = []
    for excess in found:
        direction = directions[excess.metric]
        cells = msgspec.structs.asdict(excess) | {"better": direction.removesuffix(" is better")}
        if direction == "higher is better":
            # A distance is the score with its sign turned; 0.0 first, so that there is no -0.0.
            cells |= {name: 0.0 - cells[name] for name in ("candidate", "floor")}
        rows.append([cells[name] for name in columns])
    click.echo(format_result(columns, rows, output_format))  # type: ignore[arg-type]
