"""`gnomon verdict`."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.cli.locate import locate_store, store_options
from compare.cli.output import check_writable, write_report
from compare.cli.times import TimeOrAgo

if TYPE_CHECKING:
    from compare.ship.model import ShipVerdict

_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,9})?|\.\d{1,9})\s*(%?)")


class Share(click.ParamType[float]):
    """`0.5%`, or 0.005. Gives a fraction in [0, 1]. A bare number over 1 is refused: 5 could mean 5 %."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it. Fails with a line that shows both forms."""
        if isinstance(value, float):
            return value
        found = _SHARE.fullmatch(str(value).strip())
        share = -1.0 if not found else float(found[1]) / (100.0 if found[2] else 1.0)
        if not 0.0 <= share <= 1.0:
            self.fail(f"{value!r} is no share: write 0.5% or 0.005", param, ctx)
        return share


@click.command()
@click.option("--experiment", required=True, help="The experiment, as in experiments_v1.")
@click.option("--candidate", help="The candidate endpoint's name. [default: the only one]")
@click.option(
    "--margin",
    type=Share(),
    help="The excess of candidate-only over reference-only faults that is tolerated, such as 0.5%."
    "  [required without --history]",
)
@click.option(
    "--confidence",
    type=Share(),
    default="95%",
    show_default=True,
    help="The chance that no verdict, however often it is asked for, is wrong.",
)
@click.option("--since", type=TimeOrAgo(), help="Only pairs mirrored from then on (2d, 2026-11-29T03:00).")
@click.option("--until", type=TimeOrAgo(), help="Only pairs mirrored before that.")
@click.option(
    "--min-coverage",
    type=Share(),
    default="0%",
    show_default=True,
    help="Never ship if the counted pairs are a smaller share of the consumed records.",
)
@click.option("--allow-changes", is_flag=True, help="Decide although what served changed within the range.")
@click.option(
    "--with-text", is_flag=True, help="Put the beginnings of the worst pairs' texts into the reports."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON of schema gnomon.verdict/1.")
@click.option("--html", "html_file", type=click.Path(path_type=Path, dir_okay=False), help="Write a page.")
@click.option(
    "--markdown", "markdown_file", type=click.Path(path_type=Path, dir_okay=False), help="Write Markdown."
)
@click.option(
    "--keep", "is_kept", is_flag=True, help="Keep it in the store (verdicts_v1), where the explorer finds it."
)
@click.option("--history", is_flag=True, help="Make none: print those that were kept, newest first.")
@click.option(
    "--rows", type=click.IntRange(min=1), default=50, show_default=True, help="The most rows of --history."
)
@store_options
def verdict(
    experiment: str,
    candidate: str | None,
    margin: float | None,
    confidence: float,
    since: datetime | None,
    until: datetime | None,
    min_coverage: float,
    allow_changes: bool,
    with_text: bool,
    as_json: bool,
    html_file: Path | None,
    markdown_file: Path | None,
    is_kept: bool,
    history: bool,
    rows: int,
    folder: Path | None,
    config_file: Path | None,
) -> int:
    """Say whether a candidate may ship: ship, hold, or need more pairs.

    Ship when the upper bound of (candidate-only minus reference-only) fault rate is under the margin and no
    slice is on hold; hold when a lower bound is over it. The bounds may be looked at after every pair. Say
    --since before you look: the best of many ranges is no evidence.

    Exit code: 0 ship, 1 hold, 3 need more pairs, 4 no data, 5 what served changed; 2 is an error. With
    --history it is 0.
    """
    if history:
        made_only = {
            "--keep": is_kept,
            "--since": since,
            "--until": until,
            "--html": html_file,
            "--markdown": markdown_file,
        }
        if given := [name for name, value in made_only.items() if value]:
            raise click.UsageError(f"--history prints what was kept: it takes no {' or '.join(given)}")
        _print_history(experiment, candidate, rows, as_json, folder, config_file)
        return 0
    if margin is None:
        raise click.MissingParameter(param_hint="'--margin'", param_type="option")
    import msgspec

    from compare.ship.html_page import html_page
    from compare.ship.kept import check_keepable, keep
    from compare.ship.markdown import markdown_page
    from compare.ship.model import Terms
    from compare.ship.read import read_verdict
    from compare.store.client import open_store

    check_writable(html_file, markdown_file)
    terms = Terms(margin, confidence, min_coverage, since, until, allow_changes)
    if is_kept:
        check_keepable(terms)
    with open_store(locate_store(folder, config_file), role="any" if is_kept else "reader") as store:
        found = read_verdict(store, experiment, candidate, terms, with_text=with_text)
        if is_kept:
            keep(store, found)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        click.echo("\n".join(_lines(found)))
    for file, page in ((html_file, html_page), (markdown_file, markdown_page)):
        if file is not None:
            write_report(file, page(found).encode())
    return found.exit_code


def _print_history(
    experiment: str,
    candidate: str | None,
    rows: int,
    as_json: bool,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """The kept verdicts as a table, or as the rows of `verdicts_v1`."""
    from compare.ship.kept import KeptVerdict, read_kept
    from compare.ship.words import percent, signed
    from compare.store.client import open_store
    from compare.store.print_table import format_result

    with open_store(locate_store(folder, config_file), role="reader") as store:
        found = read_kept(store, experiment, candidate, limit=rows)
    if as_json:
        columns = KeptVerdict.__struct_fields__
        click.echo(
            format_result(columns, [[getattr(one, name) for name in columns] for one in found], "json")
        )
        return
    if not found:
        click.echo("no verdict is kept: `gnomon run` and `gnomon watch` keep one every hour, --keep this one")
        return
    cells = [
        (
            f"{one.made_at:%F %T}",
            one.candidate,
            one.decision,
            percent(one.margin),
            "" if one.excess is None else signed(one.excess),
            f"{signed(one.low)} to {signed(one.high)}",
            percent(one.confidence),
            one.pairs,
            "" if one.coverage_share is None else percent(one.coverage_share),
        )
        for one in found
    ]
    head = ("made (UTC)", "candidate", "decision", "margin", "excess", "bounds", "confidence", "pairs",
            "covers")  # fmt: skip
    click.echo(format_result(head, cells, "table"))


def _lines(found: ShipVerdict) -> list[str]:
    """What the terminal shows."""
    from compare.ship import statements as say
    from compare.visible import visible_line

    dissenting = [one for one in found.slices if one.is_dissenting]
    need = say.need_line(found)
    lines = [
        f"{say.MARKS[found.decision]} {say.headline(found)}: {found.candidate} of {found.experiment}",
        f"  {say.bound_line(found)}",
        *(f"  {reason}" for reason in found.reasons),
        *([f"  {need}"] if need else []),
        *(f"  warning: {warning}" for warning in found.warnings),
        f"  {say.counts_line(found)}; {say.range_line(found)}",
        f"  covers {say.coverage_line(found)}",
        *(f"    left out: {say.left_out_line(one)} {one.records:,}" for one in found.coverage.left_out[:8]),
        f"  {len(found.slices)} slices have bounds, {len(dissenting)} on hold",
    ]
    for support in found.supports:
        name, pairs, mean, worst, floor, excess = say.support_cells(support)
        lines.append(
            f"  {name}: mean {mean}, worst 1 % {worst} ({pairs} pairs); floor {floor}; excess {excess}"
        )
    lines += [f"  {say.validity_line(one)}" for one in found.validity]
    lines += [f"  {say.served_line(one)}" for one in found.served]
    lines += [f"  firing alert, {line}" for line in say.alert_lines(found)]
    lines += [
        f"  worst pair {pair.request_id}: {', '.join(pair.families)}, severity {pair.severity:.2f}"
        for pair in found.worst
    ]
    return [visible_line(line) for line in lines]
