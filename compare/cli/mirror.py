"""`gnomon mirror`."""

from __future__ import annotations

from pathlib import Path

import click

from compare.cli.locate import config_option, read_settings


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--keep-times", is_flag=True, help="Keep each record's sent_at as its time in Kafka.")
@config_option
def mirror(file: Path, keep_times: bool, config_file: Path) -> None:
    """Send captured traffic to the mirror topic.

    FILE holds one record a line.
    Bad lines are reported by number and not sent; the exit code is then 1.
    """
    settings = read_settings(config_file)
    from rich.console import Console
    from rich.progress import Progress

    from ingest.mirror import mirror_lines

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("mirroring", total=None)
        report = mirror_lines(
            file,
            settings.kafka,
            lambda done, total: progress.update(task, completed=done, total=total),
            keep_times=keep_times,
        )
    click.echo(f"{report.sent} sent to {settings.kafka.topic}, {report.bad_count} bad lines")
    for number, reason in report.bad:
        click.echo(f"line {number}: {reason}", err=True)
    if report.bad_count:
        raise SystemExit(1)
