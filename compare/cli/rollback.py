"""`gnomon rollback`: is one called for, why, and who approves it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import click

from compare.cli.locate import locate_store, settings_in_force, store_options
from compare.cli.person import who
from ingest.settings_rollback import RollbackSettings

_json_option = click.option("--json", "is_json", is_flag=True, help="Print JSON.")
_experiment_option = click.option("--experiment", default="", help="One experiment. [default: all]")


@click.group()
def rollback() -> None:
    """Say whether a candidate should be rolled back, and approve it.

    A rollback is called for when (A and B) or C holds for some evaluations: A, golden runs in a row with a
    low score; B, too many faulty answers in the last minutes; C, the engine's own metrics. `gnomon run` and
    `gnomon watch` evaluate it; nothing is rolled back before a person approves. docs/rollback.md has it all.
    """


@rollback.command()
@_experiment_option
@click.option("--candidate", default="", help="One candidate. [default: all]")
@_json_option
@store_options
@click.pass_context
def status(
    context: click.Context,
    experiment: str,
    candidate: str,
    is_json: bool,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Say whether a rollback is called for now, with conditions A, B and C.

    Exit code: 0 no, 1 a rollback is called for, 3 it cannot be said (nobody evaluates, or conditions are
    unknown), 2 an error.
    """
    from compare.rollback.show import CALLED, UNKNOWN, plain_status, read_status, status_text
    from compare.rollback.sinks import sink_names
    from compare.store.client import open_store

    now = datetime.now(UTC)
    settings = settings_in_force(folder, config_file)
    sinks = {} if settings is None else {settings.experiment.name: sink_names(settings)}
    with open_store(locate_store(folder, config_file), role="reader") as store:
        found = read_status(store, experiment, candidate, now, sinks)
    if is_json:
        _print([plain_status(one) for one in found])
    elif found:
        click.echo("\n\n".join(status_text(one, now) for one in found))
    else:
        click.echo("UNKNOWN whether a rollback is called for: nothing was ever evaluated here")
        click.echo("  next: start gnomon run, or gnomon watch, with these settings")
    codes = {one.exit_code for one in found}
    context.exit(CALLED if CALLED in codes else UNKNOWN if UNKNOWN in codes or not found else 0)


@rollback.command()
@click.argument("decision_id", metavar="[ID]", default="")
@_json_option
@store_options
def explain(decision_id: str, is_json: bool, folder: Path | None, config_file: Path | None) -> None:
    """Show one call: its evidence, what changed since, who was told, who approved it.

    ID may be cut short. [default: the last call]
    """
    from compare.rollback.approve import find_call, last_call
    from compare.rollback.show import explain_text, explained
    from compare.rollback.sinks import sink_names
    from compare.store.client import open_store

    settings, now = settings_in_force(folder, config_file), datetime.now(UTC)
    with open_store(locate_store(folder, config_file), role="reader") as store:
        decision = find_call(store, decision_id) if decision_id else last_call(store)
        is_known = settings is not None and settings.experiment.name == decision.experiment
        sinks = sink_names(settings) if settings is not None and is_known else None
        if is_json:
            _print(explained(store, decision, now, sinks))
        else:
            click.echo(explain_text(store, decision, now, sinks))


@rollback.command()
@click.argument("decision_id", metavar="ID")
@click.option("--snapshot", "snapshot_name", required=True, metavar="NAME", help="What to go back to.")
@click.option("--by", "approved_by", help="Who approves. [default: user@host]")
@click.option("--note", default="", help="Why, for those who look at it later.")
@click.option("--again", is_flag=True, help="Run the command once more after it did not succeed.")
@_json_option
@store_options
@click.pass_context
def approve(
    context: click.Context,
    decision_id: str,
    snapshot_name: str,
    approved_by: str | None,
    note: str,
    again: bool,
    is_json: bool,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Approve a call that holds, and run rollback.approve_command once.

    The command gets the call, the snapshot and who approved as JSON on its standard input. Exit code: 0 it
    succeeded or there is none, 1 it failed, 2 the approval was refused.
    """
    import msgspec

    from compare.rollback.approve import approve as approve_call
    from compare.rollback.approve import find_call
    from compare.rollback.snapshots import find
    from compare.store.client import open_store

    in_force = settings_in_force(folder, config_file)
    settings = RollbackSettings() if in_force is None else in_force.rollback
    with open_store(locate_store(folder, config_file), role="any") as store:
        decision = find_call(store, decision_id)
        snapshot = find(store, decision.experiment, snapshot_name)
        done = approve_call(
            store, settings, decision, snapshot, approved_by=approved_by or who(), note=note, again=again
        )
    if is_json:
        _print(msgspec.to_builtins(done))
    else:
        click.echo(f"approved: {done.decision_id}, to snapshot {done.snapshot}, by {done.approved_by}")
        if done.status == "recorded":
            click.echo("nothing was run: rollback.approve_command is not set")
        else:
            click.echo(f"command {done.status}" + (f": {done.output.rstrip()}" if done.output else ""))
    context.exit(1 if done.status == "failed" else 0)


@rollback.command()
@_experiment_option
@click.option("--candidate", default="", help="One candidate. [default: all]")
@click.option("--all", "shows_all", is_flag=True, help="Changes of single conditions too.")
@click.option("--limit", type=click.IntRange(min=1, max=10_000), default=50, show_default=True)
@_json_option
@store_options
def history(
    experiment: str,
    candidate: str,
    shows_all: bool,
    limit: int,
    is_json: bool,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """List when calls began and ended, the newest first."""
    from compare.rollback.decisions import read_decisions
    from compare.rollback.show import plain
    from compare.store.client import open_store
    from compare.store.print_table import format_result
    from compare.visible import visible_line

    with open_store(locate_store(folder, config_file), role="reader") as store:
        found = read_decisions(store, experiment, candidate, calls_only=not shows_all, limit=limit)
    if is_json:
        _print([plain(one) for one in found])
        return
    if not found:
        click.echo("no rollback was ever called for")
        return
    columns = ("decided_at", "event", "id", "candidate", "A", "B", "C", "why")
    rows = [
        (
            f"{one.decided_at:%Y-%m-%d %H:%M:%S}",
            one.event,
            one.decision_id,
            one.candidate,
            one.condition_a,
            one.condition_b,
            one.condition_c,
            visible_line(one.summary, 120),
        )
        for one in found
    ]
    click.echo(format_result(columns, rows, "table"))


@rollback.group()
def snapshot() -> None:
    """Keep what a rollback may go back to.

    A snapshot is a model with its weights, image, configuration, chat template and golden run. It never
    changes, and can be a target only if its golden run passed.
    """


@snapshot.command("add")
@click.argument("name")
@click.option("--experiment", help="Whose. [default: that of the settings]")
@click.option("--endpoint", help="Which endpoint serves it. [default: the experiment's only candidate]")
@click.option("--golden-run", metavar="ID", help="The run that judges it. [default: the last of what serves]")
@click.option("--image", help="The container image: no server tells it.")
@click.option("--weights-sha256", metavar="HEX", help="The hash of the weights: no server tells it.")
@click.option(
    "--file", "file", type=click.Path(path_type=Path, dir_okay=False), help="Take it from TOML or JSON."
)
@click.option("--by", "added_by", help="Who adds it. [default: user@host]")
@click.option("--note", default="", help="What to know of it.")
@_json_option
@store_options
def snapshot_add(
    name: str,
    experiment: str | None,
    endpoint: str | None,
    golden_run: str | None,
    image: str | None,
    weights_sha256: str | None,
    file: Path | None,
    added_by: str | None,
    note: str,
    is_json: bool,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Add a snapshot NAME of what serves now, or of a file.

    What serves is what the service last saw (view served_v1), judged by the last golden run of just that.
    """
    import msgspec

    from compare.rollback.show import snapshot_text
    from compare.rollback.snapshots import add, from_file, from_serving
    from compare.store.client import open_store

    if file is not None and (golden_run or image or weights_sha256 or note):
        raise click.UsageError("with --file, golden_run, image, weights_sha256 and note stand in the file")
    experiment, endpoint = _which(experiment, endpoint, folder, config_file)
    by = added_by or who()
    with open_store(locate_store(folder, config_file), role="any") as store:
        if file is not None:
            made = from_file(
                store, file, experiment=experiment, endpoint_name=endpoint, name=name, added_by=by
            )
        else:
            made = from_serving(
                store,
                experiment=experiment,
                endpoint_name=endpoint,
                name=name,
                added_by=by,
                golden_run=golden_run,
                image=image,
                weights_sha256=weights_sha256,
                note=note,
            )
        add(store, made)
    if is_json:
        _print(msgspec.to_builtins(made))
    else:
        click.echo(snapshot_text(made))


@snapshot.command("list")
@_experiment_option
@_json_option
@store_options
def snapshot_list(experiment: str, is_json: bool, folder: Path | None, config_file: Path | None) -> None:
    """List the snapshots, the newest first."""
    import msgspec

    from compare.rollback.show import snapshot_rows
    from compare.rollback.snapshots import read_snapshots
    from compare.store.client import open_store
    from compare.store.print_table import format_result

    with open_store(locate_store(folder, config_file), role="reader") as store:
        found = read_snapshots(store, experiment)
    if is_json:
        _print(msgspec.to_builtins(found))
    elif found:
        click.echo(format_result(*snapshot_rows(found), "table"))
    else:
        click.echo("there are no snapshots; gnomon rollback snapshot add NAME makes one")


@snapshot.command("show")
@click.argument("name")
@click.option("--experiment", default="", help="Whose. [default: the only one that has it]")
@_json_option
@store_options
def snapshot_show(
    name: str, experiment: str, is_json: bool, folder: Path | None, config_file: Path | None
) -> None:
    """Show all of one snapshot, and whether it may be a target."""
    import msgspec

    from compare.rollback.show import snapshot_text
    from compare.rollback.snapshots import find
    from compare.store.client import open_store

    with open_store(locate_store(folder, config_file), role="reader") as store:
        found = find(store, experiment, name)
    if is_json:
        _print(msgspec.to_builtins(found))
    else:
        click.echo(snapshot_text(found))


def _which(
    experiment: str | None, endpoint: str | None, folder: Path | None, config_file: Path | None
) -> tuple[str, str]:
    """Experiment and endpoint, from the settings where they are not given."""
    if experiment and endpoint:
        return experiment, endpoint
    in_force = settings_in_force(folder, config_file)
    if in_force is None:
        raise click.UsageError("give --experiment and --endpoint, or --config")
    settings = in_force.experiment
    if endpoint is None:
        if len(settings.candidates) > 1:
            raise click.UsageError(f"give --endpoint: the candidates are {', '.join(settings.candidates)}")
        endpoint = settings.candidates[0]
    return experiment or settings.name, endpoint


def _print(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))
