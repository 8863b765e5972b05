"""`gnomon pause`, `gnomon resume` and `gnomon status`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli.locate import locate_store, settings_in_force, store_options
from compare.cli.person import who
from ingest.errors import SettingsError

if TYPE_CHECKING:
    from compare.store.client import Store

MOST_DETAIL = 200
"""Characters of why a record failed."""

_endpoint = click.option("--endpoint", default="", help="One endpoint, by its name. [default: all]")
_experiment = click.option("--experiment", default="", help="One experiment, by its name. [default: all]")


@click.command()
@_endpoint
@_experiment
@click.option("--reason", default="", help="Why, for those who look at it later.")
@store_options
def pause(endpoint: str, experiment: str, reason: str, folder: Path | None, config_file: Path | None) -> None:
    """Let replay send nothing more, to one endpoint or to all.

    Every run on this store obeys within some seconds and until `gnomon resume`, across restarts. Calls that
    are out end as they do; records wait in Kafka, nothing is lost.
    """
    from compare.controls import Scope, order
    from compare.store.client import open_store

    scope = Scope(experiment, endpoint)
    with open_store(locate_store(folder, config_file), role="any") as store:
        _check_names(store, experiment, endpoint)
        order(store, "pause", scope, ordered_by=who(), reason=reason)
    click.echo(f"paused: {scope}")


@click.command()
@_endpoint
@_experiment
@click.option(
    "--partition",
    "partitions",
    type=click.IntRange(min=0, max=2**32 - 1),
    multiple=True,
    help="Let this partition go on that is held for its dead letters.",
)
@store_options
def resume(
    endpoint: str,
    experiment: str,
    partitions: tuple[int, ...],
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Take back a `gnomon pause` of the same endpoint and experiment.

    Says which other pauses still hold. With --partition it lets a partition go on instead that the service
    holds because too many of its records are dead letters; it is held again if that goes on.
    """
    from compare.controls import Scope, let_go, order, pauses
    from compare.store.client import open_store

    if partitions and endpoint:
        raise click.UsageError("give --partition or --endpoint, not both")
    scope = Scope(experiment, endpoint)
    with open_store(locate_store(folder, config_file), role="any") as store:
        for partition in partitions:
            let_go(store, experiment, partition, ordered_by=who())
        if partitions:
            click.echo(f"let go: partition {', '.join(map(str, partitions))}")
            return
        held = pauses(store)
        is_paused = any(one.scope == scope for one in held)
        if is_paused:
            order(store, "resume", scope, ordered_by=who())
    click.echo(f"resumed: {scope}" if is_paused else f"was not paused: {scope}")
    for one in held:
        if one.scope != scope:
            click.echo(f"still paused: {one}")


@click.command()
@store_options
def status(folder: Path | None, config_file: Path | None) -> None:
    """Say whether the service is ready, what is paused, what failed, and the tokens of today (UTC).

    Records fail that met nobody or no budget; those of the last hour are told. The service is asked at
    [operations] host and port of the settings: on its machine, or in its container. The rest is the store's.
    """
    from compare.controls import pauses
    from compare.operations.ask_ready import ask_ready
    from compare.store.client import open_store
    from compare.visible import visible_line

    settings = settings_in_force(folder, config_file)
    ready = None if settings is None else ask_ready(settings.operations)
    with open_store(locate_store(folder, config_file), role="reader") as store:
        held = pauses(store)
        used = store.query(
            "SELECT endpoint_name, experiment, prompt_tokens, completion_tokens, estimated_tokens, calls"
            " FROM token_use_v1 WHERE day = toDate(now('UTC')) ORDER BY endpoint_name, experiment"
        ).rows
        failed = store.query(
            "SELECT experiment, reason, count(), max(ingested_at), argMax(detail, ingested_at)"
            " FROM outcomes_v1 WHERE kind = 'failed' AND ingested_at >= now() - INTERVAL 1 HOUR"
            " GROUP BY experiment, reason ORDER BY experiment, reason"
        ).rows
    if ready is not None:
        click.echo(ready)
    for one in held:
        click.echo(f"paused: {one}")
    if not held:
        click.echo("nothing is paused")
    for experiment, reason, count, last, detail in failed:
        click.echo(
            f'last hour: {count} record{"s" * (count != 1)} of experiment "{experiment}" failed ({reason}), '
            f"the last at {last:%H:%M:%S} UTC: {visible_line(detail, MOST_DETAIL)}"
        )
    if not failed:
        click.echo("last hour: no record failed")
    for name, experiment, prompt, completion, guessed, calls in used:
        click.echo(
            f'today: endpoint "{name}" of experiment "{experiment}": {prompt + completion} tokens '
            f"({prompt} prompt, {completion} completion, {guessed} of them estimated) in {calls} calls"
        )
    if not used:
        click.echo("today: no tokens were counted")


def _check_names(store: Store, experiment: str, endpoint: str) -> None:
    """Refuse a name that no run on this store has had: its pause would stop nothing."""
    from ingest.settings_convert import nearest

    known = store.query(
        "SELECT DISTINCT experiment, arrayJoin(JSONExtractKeys(settings, 'endpoints')) FROM experiments_v1"
    ).rows
    for word, name, names in (
        ("experiment", experiment, {str(row[0]) for row in known}),
        ("endpoint", endpoint, {str(row[1]) for row in known}),
    ):
        if name and name not in names:
            meant = nearest(name, names)
            hint = f"did you mean {meant}?" if meant else f"known: {', '.join(sorted(names)) or 'none yet'}"
            raise SettingsError(f"no run on this store has had the {word} {name!r}; {hint}")
