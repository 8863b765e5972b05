"""`gnomon golden run`, `runs` and `promote`."""

from __future__ import annotations

from pathlib import Path

import click

from compare.cli.locate import config_option, locate_store, store_options
from compare.cli.person import who

EXIT_FAILED = 1
EXIT_INCOMPLETE = 3


@click.command()
@click.option("--set", "set_name", metavar="NAME", help="The golden set.  [default: golden.set]")
@click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="NAME",
    help="Ask this endpoint. May be repeated.  [default: golden.endpoints, else each candidate]",
)
@click.option(
    "--candidate", "is_candidate", is_flag=True, help="Ask each candidate, whatever golden.endpoints is."
)
@click.option(
    "--min-score", type=click.FloatRange(0, 1), help="Least mean score.  [default: golden.warn_mean_score]"
)
@click.option(
    "--allow-failed",
    type=click.IntRange(min=0),
    help="So many cases may fail.  [default: that of golden]",
)
@click.option(
    "--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write JUnit XML into this file."
)
@click.option("--json", "is_json", is_flag=True, help="Print runs, results and changes as JSON.")
@config_option
def run(
    set_name: str | None,
    endpoints: tuple[str, ...],
    is_candidate: bool,
    min_score: float | None,
    allow_failed: int | None,
    junit: Path | None,
    is_json: bool,
    config_file: Path,
) -> None:
    r"""Run a set against an endpoint, and say what failed and why.

    \b
    Exit code: 0  every run passed
               1  a run failed
               2  the set could not be run: settings, store, credentials; or the
                  JUnit file could not be written
               3  a run is incomplete: the endpoint was away, paused or out of budget;
                  that says nothing of the model
    """
    from rich.console import Console
    from rich.progress import Progress

    from compare.cli.locate import read_settings
    from compare.cli.output import check_writable, write_report
    from compare.golden.junit import junit_xml
    from compare.golden.report import as_json, told
    from compare.golden.run import Limits
    from compare.golden.session import asked_endpoints, run_alone
    from compare.golden.sets import require_cases
    from compare.operations.logs import logging_to_stderr
    from compare.redacted_logs import redacted_logs
    from compare.store import migrate
    from compare.store.client import open_store
    from ingest.redact import redactor_of

    if is_candidate and endpoints:
        raise click.UsageError("--candidate and --endpoint exclude each other")
    check_writable(junit)
    settings = read_settings(config_file)
    name = set_name or settings.golden.set
    if name is None:
        raise click.UsageError("say --set, or set golden.set in the settings")
    asked = settings.experiment.candidates if is_candidate else asked_endpoints(settings, endpoints)
    limits = Limits(
        settings.golden.warn_mean_score if min_score is None else min_score,
        settings.golden.allow_failed if allow_failed is None else allow_failed,
    )
    with (
        logging_to_stderr(settings.operations),
        redacted_logs(redactor_of(settings.redaction)),
        open_store(settings.store, role="any") as store,
    ):
        migrate.apply(store, settings.store)
        cases = require_cases(store, name)
        with Progress(console=Console(stderr=True), transient=True) as progress:
            tasks = {one: progress.add_task(one, total=len(cases)) for one in asked}
            outcomes = run_alone(
                settings,
                store,
                name,
                cases,
                asked,
                "command",
                limits,
                on_progress=lambda endpoint, done: progress.update(tasks[endpoint], completed=done),
            )
    click.echo(as_json(outcomes) if is_json else "\n\n".join(map(told, outcomes)))
    if junit is not None:
        write_report(junit, junit_xml(outcomes))
    statuses = {outcome.run.status for outcome in outcomes}
    if "failed" in statuses:
        raise SystemExit(EXIT_FAILED)
    if "incomplete" in statuses:
        raise SystemExit(EXIT_INCOMPLETE)


@click.command()
@click.option("--set", "set_name", metavar="NAME", help="Only runs of this set.")
@click.option("--endpoint", "endpoint_name", metavar="NAME", help="Only runs against this endpoint.")
@click.option("--rows", type=click.IntRange(min=1), default=20, show_default=True, help="The most rows.")
@store_options
def runs(
    set_name: str | None, endpoint_name: str | None, rows: int, folder: Path | None, config_file: Path | None
) -> None:
    """List the last runs, the newest first; * marks the baseline of its set."""
    from compare.golden.report import runs_table
    from compare.golden.run_log import read_runs
    from compare.store.client import open_store

    with open_store(locate_store(folder, config_file), role="reader") as store:
        click.echo(runs_table(read_runs(store, set_name, endpoint_name=endpoint_name, limit=rows)))


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--even-failed", is_flag=True, help="Also a run that did not pass.")
@store_options
def promote(run_id: str, even_failed: bool, folder: Path | None, config_file: Path | None) -> None:
    """Make a run the baseline of its set: later runs show what changed against it.

    RUN is the run's id as gnomon golden runs shows it, or its first characters.
    """
    from compare.golden.run_log import find_run
    from compare.golden.sets import promote as make_baseline
    from compare.store.client import open_store
    from ingest.errors import FatalError

    with open_store(locate_store(folder, config_file), role="any") as store:
        found = find_run(store, run_id)
        if found.status == "incomplete" or not (found.is_passed or even_failed):
            hint = "" if found.status == "incomplete" else "; say --even-failed to promote it all the same"
            raise FatalError(f"golden run {found.run_id} is {found.status}{hint}")
        make_baseline(store, found.set_name, found.run_id, who())
    click.echo(f"run {found.run_id} is the baseline of golden set {found.set_name}")
