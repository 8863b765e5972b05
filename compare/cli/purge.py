"""`gnomon purge`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli.locate import locate_store, store_options
from compare.cli.person import confirm

if TYPE_CHECKING:
    from compare.purge import PurgeReport


EXIT_NOTHING = 3
"""Nothing is stored of what was named."""


@click.command()
@click.option("--request-id", help="One request, by its id as it is stored.")
@click.option("--tenant", help="All that is stored of one tenant by now.")
@click.option("--dry-run", is_flag=True, help="Say what would go, change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="When the rows are gone, wait so long in all until the replaced parts have left the disk; "
    "ClickHouse takes 8 minutes by default.",
)
@store_options
def purge(
    request_id: str | None,
    tenant: str | None,
    dry_run: bool,
    yes: bool,
    wait_s: float,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Delete a request, or a tenant, from every table.

    Works while the service writes. Says for each table how many rows there were and are, and what it cannot
    reach. The exit code is 1 if rows are left or the question was answered with no, and 3 if nothing is
    stored of it: a wrong id, or it was purged before.
    """
    from compare.purge import Selection, find
    from compare.purge import purge as purge_rows
    from compare.rollups.rebuild import Rollups
    from compare.store.client import open_store

    if (request_id is None) == (tenant is None):
        raise click.UsageError("give --request-id or --tenant, one of them")
    settings = locate_store(folder, config_file)
    selection = Selection(request_id, tenant)
    with open_store(settings, role="reader" if dry_run else "any") as store:
        found = find(store, selection)
        what = f"{selection.column} {selection.value!r}"
        rows = sum(table.rows_before for table in found.tables)
        if not rows:
            click.echo(f"nothing is stored of {what}: a wrong one, or it was purged before", err=True)
            raise SystemExit(EXIT_NOTHING)
        if dry_run:
            click.echo(_found_text(found))
            return
        if not yes:
            confirm(f"Delete {rows} rows at {found.positions} positions of {what}?")
        rollups = Rollups(store, settings)

        def rebuild(days: Sequence[date]) -> None:
            for day in days:
                rollups.rebuild_day(day)

        report = purge_rows(store, selection, cluster=settings.cluster, rebuild_days=rebuild, wait_s=wait_s)
    click.echo(_report_text(report))
    if not report.is_clean:
        raise SystemExit(1)


def _found_text(found: PurgeReport) -> str:
    lines = [f"{found.positions} positions; nothing was changed"]
    return "\n".join(lines + [f"{t.table:<16}{t.rows_before:>10} rows" for t in found.tables])


def _report_text(report: PurgeReport) -> str:
    lines = [
        f"{report.positions} positions purged",
        f"{'table':<16}{'rows before':>12}{'rows now':>10}  mutations done",
    ]
    for table in report.tables:
        done = ", ".join(table.mutations)
        lines.append(f"{table.table:<16}{table.rows_before:>12}{table.rows_after:>10}  {done}".rstrip())
    if report.alerts:
        lines.append(f"{report.alerts} examples taken out of alerts")
    if report.golden_cases:
        lines.append(f"{report.golden_cases} cases taken out of golden sets")
    old = [f"{table.table}/{part}" for table in report.tables for part in table.old_parts]
    if old:
        lines.append(
            f"{len(old)} replaced parts are still on disk, read by no query; ClickHouse deletes them after "
            f"old_parts_lifetime, 8 minutes by default (--wait waits for it): {', '.join(old[:5])}"
            + (" ..." if len(old) > 5 else "")
        )
    else:
        lines.append("no replaced part is left on disk")
    if report.detached_parts:
        lines.append(f"{report.detached_parts} detached parts were not looked into")
    if report.days:
        said = "NOT rebuilt" if report.stale_rollups else "rebuilt"
        lines.append(f"rollups {said} for {', '.join(map(str, report.days))}")
    if not report.is_clean:
        lines.append("rows are left: records were stored meanwhile; run it again")
    lines.append(
        "not reached: the mirror topic and the dead-letter topic in Kafka (until their retention), backups, "
        "alerts already sent, records that are under way (run it again), dead letters that were not decoded"
    )
    return "\n".join(lines)
