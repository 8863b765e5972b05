"""`gnomon replay`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from compare.cli.locate import config_option, read_settings
from compare.cli.person import confirm
from compare.cli.times import TimeOrAgo
from compare.stop_signals import StopSignals

if TYPE_CHECKING:
    from compare.reprocess.replay import ReplayPlan, ReplayReport
    from ingest.settings import Settings


@click.command()
@click.option(
    "--from",
    "start",
    type=TimeOrAgo(),
    required=True,
    metavar="TIME",
    help="Mirrored since: 2h, 7d, or a time.",
)
@click.option("--to", "end", type=TimeOrAgo(), metavar="TIME", help="Mirrored before.  [default: now]")
@click.option(
    "--source", metavar="EXPERIMENT", help="Whose requests.  [default: the only other one in that time]"
)
@click.option("--where", metavar="SQL", help="A condition on columns of pairs_v1 and requests_v1.")
@click.option("--route", help="Only this route.")
@click.option("--tenant", help="Only this tenant.")
@click.option("--verdict", help="Only requests with this verdict in the source experiment.")
@click.option("--limit", type=click.IntRange(min=1), help="The oldest so many.")
@click.option(
    "--sample", type=click.FloatRange(0, 1, min_open=True), help="This share, by hash of the request id."
)
@click.option("--fresh-reference", is_flag=True, help="Ask the reference again, reuse no answer of it.")
@click.option(
    "--redacted", is_flag=True, help="Run a redacted request as it is stored, if Kafka lost the original."
)
@click.option("--no-kafka", is_flag=True, help="Take every request from the store.")
@click.option(
    "--in-flight", type=click.IntRange(min=1), help="At most so many calls at once to each endpoint."
)
@click.option("--dry-run", is_flag=True, help="Say what would be run, ask no model.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
def replay(
    start: datetime,
    end: datetime | None,
    source: str | None,
    where: str | None,
    route: str | None,
    tenant: str | None,
    verdict: str | None,
    limit: int | None,
    sample: float | None,
    fresh_reference: bool,
    redacted: bool,
    no_kafka: bool,
    in_flight: int | None,
    dry_run: bool,
    yes: bool,
    config_file: Path,
) -> None:
    """Run stored requests again, against another candidate, as a new experiment.

    The settings file describes the new experiment. Answers that the same reference gave to the same
    requests are reused. Stopped or killed, the same command goes on where it was.
    """
    with StopSignals() as signals:
        from rich.console import Console
        from rich.progress import Progress

        from compare.operations.logs import logging_to_stderr
        from compare.reprocess.replay import ReplayOptions, plan_replay, run_replay
        from compare.reprocess.selection import Wanted
        from compare.store.client import open_store

        settings = read_settings(config_file)
        wanted = Wanted(
            start=start,
            end=end or datetime.now(UTC),
            where=where,
            route=route,
            tenant=tenant,
            verdict=verdict,
            limit=limit,
            sample=sample,
        )
        if wanted.start >= wanted.end:
            raise click.UsageError("--from must be before --to")
        options = ReplayOptions(
            reuses_answers=not fresh_reference, allow_redacted=redacted, asks_kafka=not no_kafka
        )
        if in_flight is not None:
            settings = _gentle(settings, in_flight)
        with logging_to_stderr(settings.operations), open_store(settings.store, role="any") as store:
            with open_store(settings.store, role="reader") as reader:
                plan = plan_replay(store, reader, settings, wanted, source)
            left = len(plan.remaining)
            click.echo(_found(plan, settings), err=True)
            if dry_run or not left:
                return
            if not yes:
                confirm(f"Run {left} requests?")
            with Progress(console=Console(stderr=True), transient=True) as progress:
                task = progress.add_task("replaying", total=left)
                report = run_replay(
                    settings,
                    store,
                    plan,
                    options,
                    on_progress=lambda counters: progress.update(task, completed=counters.outcomes),
                    signals=signals,
                )
    click.echo(_told(report))
    if report.failed or not report.is_whole or {"redacted", "gone"} & report.came_from.keys():
        raise SystemExit(1)


def _gentle(settings: Settings, in_flight: int) -> Settings:
    endpoints = {
        name: msgspec.structs.replace(one, max_in_flight=min(one.max_in_flight, in_flight))
        for name, one in settings.endpoints.items()
    }
    most = min(settings.delivery.max_in_flight_requests, in_flight)
    delivery = msgspec.structs.replace(settings.delivery, max_in_flight_requests=most)
    return msgspec.structs.replace(settings, endpoints=endpoints, delivery=delivery)


def _found(plan: ReplayPlan, settings: Settings) -> str:
    left = len(plan.remaining)
    found = f"{plan.selected} requests of experiment {plan.source} found"
    if left < plan.selected:
        found += f", {plan.selected - left} of them done before"
    candidates = ", ".join(settings.experiment.candidates)
    return f"{found}; {left} to run against {candidates} as experiment {settings.experiment.name}"


def _told(report: ReplayReport) -> str:
    ended = {
        "compared": report.compared,
        **{f"skipped ({reason})": count for reason, count in report.skipped.items()},
        **{f"failed ({reason})": count for reason, count in report.failed.items()},
        "dead letters": report.dead_lettered,
        "done before": report.already_stored,
    }
    lines = [", ".join(f"{count} {what}" for what, count in ended.items() if count) or "nothing was run"]
    places = {
        "kafka": "from Kafka",
        "store": "from the store",
        "redacted": "refused as redacted (see --redacted)",
        "gone": "neither in Kafka nor in the store",
    }
    came = ", ".join(
        f"{report.came_from[key]} {what}" for key, what in places.items() if key in report.came_from
    )
    if came:
        lines.append(f"requests: {came}")
    looked_for = sum(report.answers.values())
    if looked_for:
        reused = report.answers.get("reused", 0)
        line = f"reference: {reused} of {looked_for} answers reused ({100 * reused / looked_for:.1f} %)"
        asked = ", ".join(f"{count} {why}" for why, count in report.answers.items() if why != "reused")
        lines.append(line + (f"; asked anew: {asked}" if asked else ""))
    if not report.is_whole:
        lines.append("stopped before the end: the same command goes on here")
    return "\n".join(lines)
