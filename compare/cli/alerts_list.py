"""`gnomon alerts list` and `gnomon alerts show`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.cli.locate import locate_store, settings_in_force, store_options

if TYPE_CHECKING:
    from compare.store.client import Store
    from ingest.settings_notify import NotifySettings

_STATES = ("firing", "resolved", "pending", "all")
_COLUMNS = (
    "alert_id", "group_key", "state", "severity", "category", "experiment", "candidate", "metric",
    "dimension", "slice", "started_at", "raised_at", "fired_at", "resolved_at", "is_acknowledged",
    "acknowledged_by", "is_silenced", "silenced_until", "summary",
)  # fmt: skip


@click.command("list")
@click.option("--experiment", default="", help="Only this experiment.")
@click.option(
    "--state",
    type=click.Choice(_STATES),
    default="firing",
    show_default=True,
    help="Which; pending is what has a hundredth of the evidence that an alarm takes.",
)
@click.option("--rows", type=click.IntRange(min=1), default=50, show_default=True, help="The most rows.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
@store_options
def list_alerts(
    experiment: str, state: str, rows: int, is_json: bool, folder: Path | None, config_file: Path | None
) -> None:
    """List the alerts, newest first, and the silences in force."""
    from compare.alerts.actions import read_actions
    from compare.store.client import open_store
    from compare.store.print_table import format_result, json_row

    now = datetime.now(UTC)
    with open_store(locate_store(folder, config_file), role="reader") as store:
        if state == "pending":
            columns, found = _pending(store, experiment, rows)
        else:
            columns, found = _alerts(store, experiment, state, rows)
        silences = [one for one in read_actions(store, experiment or None).silences if one.holds(now)]
    if is_json:
        objects = [json_row(columns, row) for row in found]
        click.echo(json.dumps(objects, ensure_ascii=False, indent=2, allow_nan=False))
        return
    if found:
        click.echo(format_result(*_short(columns, found), "table"))
    else:
        click.echo(f"no alert is {state}" if state != "all" else "no alert has fired")
    for one in silences:
        why = f": {one.note}" if one.note else ""
        until = one.true_end.strftime("%Y-%m-%d %H:%M:%S UTC")
        click.echo(f"silence {one.action_id} of {one.matcher} until {until} by {one.acted_by}{why}")


@click.command()
@click.argument("alert_id", metavar="ID")
@click.option("--json", "is_json", is_flag=True, help="Print JSON: the rows of alerts_v1.")
@click.option("--explorer", metavar="URL", help="Where the explorer is: links of the worst pairs lead there.")
@store_options
def show(
    alert_id: str, is_json: bool, explorer: str | None, folder: Path | None, config_file: Path | None
) -> None:
    """Show all that is known of one alert, or of a group.

    ID is the beginning of an alert's id, or `group:` and that of a group's key.
    """
    from compare.alerts.actions import find_target
    from compare.alerts.show import show_target
    from compare.store.client import open_store
    from compare.store.print_table import json_row

    with open_store(locate_store(folder, config_file), role="reader") as store:
        target = find_target(store, alert_id)
        if is_json:
            found = store.query(
                "SELECT * FROM alerts_v1 WHERE experiment = {experiment:String}"
                " AND group_key = {group:String} AND {id:String} IN ('', alert_id)"
                " ORDER BY fired_at, alert_id",
                {"experiment": target.experiment, "group": target.group_key, "id": target.alert_id},
            )
            objects = [json_row(found.column_names, row) for row in found.rows]
            click.echo(json.dumps(objects, ensure_ascii=False, indent=2, allow_nan=False))
            return
        click.echo(show_target(store, target, _links(explorer, config_file)))


def _links(explorer: str | None, config_file: Path | None) -> NotifySettings:
    """Where links lead: by the settings, if there are any, and `--explorer` before them."""
    import msgspec

    from ingest.settings_notify import NotifySettings

    settings = settings_in_force(None, config_file)
    notify = NotifySettings() if settings is None else settings.notify
    return notify if explorer is None else msgspec.structs.replace(notify, explorer_url=explorer)


def _alerts(
    store: Store, experiment: str, state: str, rows: int
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    found = store.query(
        f"SELECT {', '.join(_COLUMNS)} FROM alerts_v1"
        " WHERE {experiment:String} IN ('', experiment) AND {state:String} IN ('all', state)"
        " ORDER BY raised_at DESC, alert_id LIMIT {rows:UInt32}",
        {"experiment": experiment, "state": state, "rows": rows},
    ).rows
    return _COLUMNS, found


def _pending(store: Store, experiment: str, rows: int) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    columns = ("experiment", "candidate", "metric", "dimension", "slice", "statistic", "threshold")
    found = store.query(
        f"SELECT {', '.join(columns)} FROM detectors_v1"
        " WHERE {experiment:String} IN ('', experiment) AND status = 'pending'"
        " ORDER BY statistic / threshold DESC LIMIT {rows:UInt32}",
        {"experiment": experiment, "rows": rows},
    ).rows
    return columns, found


def _short(
    columns: tuple[str, ...], rows: list[tuple[Any, ...]]
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """What fits a terminal: short ids, and one word for what people did."""
    if "alert_id" not in columns:
        return columns, rows
    shown = []
    for row in rows:
        cell = dict(zip(columns, row, strict=True))
        where = "" if cell["dimension"] == "experiment" else f"{cell['dimension']} {cell['slice']}"
        done = [word for word in ("acknowledged", "silenced") if cell[f"is_{word}"]]
        shown.append(
            (
                cell["alert_id"][:8],
                cell["group_key"][:8],
                cell["state"],
                cell["severity"],
                f"{cell['experiment']}/{cell['candidate']}",
                cell["metric"],
                where,
                cell["raised_at"].strftime("%Y-%m-%d %H:%M"),
                ", ".join(done),
            )
        )
    return ("id", "group", "state", "severity", "candidate", "metric", "slice", "fired", "by people"), shown
