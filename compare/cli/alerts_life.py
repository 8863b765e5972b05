"""`gnomon alerts ack`, `silence`, `unsilence` and `test`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from compare.cli.locate import config_option, locate_store, read_settings, store_options
from compare.cli.person import who
from compare.cli.times import Duration, TimeOrAgo

_note = click.option("--note", default="", help="Why, for those who look at it later.")


@click.command()
@click.argument("alert_id", metavar="ID")
@_note
@store_options
def ack(alert_id: str, note: str, folder: Path | None, config_file: Path | None) -> None:
    """Say that you look after an alert: it sends no more reminders.

    ID is the beginning of an alert's id, or `group:` and that of a group's key, which stands for all its
    alerts. It still tells when it gets worse, when others join it, and when it is over.
    """
    from compare.alerts.actions import acknowledge, find_target
    from compare.store.client import open_store

    with open_store(locate_store(folder, config_file), role="any") as store:
        target = find_target(store, alert_id)
        acknowledge(store, target, by=who(), note=note)
    click.echo(f"acknowledged: {target} of experiment {target.experiment}")


@click.command()
@click.argument("alert_id", metavar="[ID]", default="")
@click.option("--metric", default="", help="Alerts of this metric.")
@click.option("--slice", "slice_", default="", metavar="DIMENSION=VALUE", help="Alerts of this slice.")
@click.option("--experiment", default="", help="Alerts of this experiment.")
@click.option("--candidate", default="", help="Alerts of this candidate.")
@click.option("--for", "duration", type=Duration(), help="For so long from now: 90m, 8h, 2d.")
@click.option("--until", type=TimeOrAgo(), metavar="TIME", help="Until then: 2026-11-30T09:00, UTC.")
@_note
@store_options
def silence(
    alert_id: str,
    metric: str,
    slice_: str,
    experiment: str,
    candidate: str,
    duration: timedelta | None,
    until: datetime | None,
    note: str,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Tell nobody of some alerts until a time.

    Which: one by its ID (`group:` before a group's key), or all that match every option given. They go on
    firing and are listed; whoever was told that one fires is told when it is over.
    """
    from compare.alerts.actions import Matcher, find_target
    from compare.alerts.actions import silence as make
    from compare.store.client import open_store

    if (duration is None) == (until is None):
        raise click.UsageError("a silence has an end: give --for DURATION or --until TIME")
    dimension, equals, value = slice_.partition("=")
    if slice_ and not (equals and dimension and value):
        raise click.UsageError("--slice is DIMENSION=VALUE, such as route=extract")
    if alert_id and (metric or slice_ or experiment or candidate):
        raise click.UsageError("give an ID or a matcher, not both")
    now = datetime.now(UTC)
    ends_at = now + duration if duration is not None else until
    assert ends_at is not None
    with open_store(locate_store(folder, config_file), role="any") as store:
        matcher = Matcher(experiment, candidate, metric, dimension, value)
        if alert_id:
            target = find_target(store, alert_id)
            matcher = Matcher(
                experiment=target.experiment, group_key=target.group_key, alert_id=target.alert_id
            )
        action_id = make(store, matcher, ends_at=ends_at, now=now, by=who(), note=note)
    click.echo(f"silence {action_id} of {matcher} until {ends_at:%Y-%m-%d %H:%M:%S} UTC")


@click.command()
@click.argument("silence_id", metavar="ID")
@_note
@store_options
def unsilence(silence_id: str, note: str, folder: Path | None, config_file: Path | None) -> None:
    """End a silence now.

    ID is the beginning of a silence's id, or of the id of the alert or group that it was made for.
    """
    from compare.alerts.actions import find_silences
    from compare.alerts.actions import unsilence as end
    from compare.store.client import open_store

    with open_store(locate_store(folder, config_file), role="any") as store:
        for one in find_silences(store, silence_id, datetime.now(UTC)):
            end(store, one, by=who(), note=note)
            click.echo(f"ended: silence {one.action_id} of {one.matcher}")


@click.command("test")
@click.option("--sink", "names", multiple=True, help="Only this sink, as KIND:NAME or NAME; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Print what each sink would get; send nothing.")
@config_option
def try_sinks(names: tuple[str, ...], dry_run: bool, config_file: Path) -> None:
    """Send a test alert to the sinks of the settings, firing and then resolved.

    Its reason is `test` and its title says so. Ends with 1 if a sink did not take it. Touches no store.
    """
    from compare.alerts.sample import sample_notices
    from compare.alerts.sinks import open_sinks

    settings = read_settings(config_file)
    sinks = open_sinks(settings.notify)
    for name in names:
        if all(name not in (sink.name, sink.name.partition(":")[2]) for sink in sinks):
            known = ", ".join(sink.name for sink in sinks) or "none"
            raise click.UsageError(f"no sink is called {name!r}; sinks of {config_file}: {known}")
    chosen = [
        sink for sink in sinks if not names or sink.name in names or sink.name.partition(":")[2] in names
    ]
    if not chosen:
        raise click.ClickException(f"{config_file} has no sink: see [notify] in `gnomon config --example`")
    now = datetime.now(UTC)
    notices = sample_notices(settings, now)
    failed = False
    for sink in chosen:
        for notice in notices:
            if dry_run:
                click.echo(f"=== {sink.name}, {notice.state}\n{sink.preview(notice, now)}\n")
                continue
            delivery = sink.send(notice, now)
            failed |= bool(delivery.error)
            click.echo(f"{sink.name}, {notice.state}: {delivery.error or 'received'}")
    if failed:
        raise SystemExit(1)
