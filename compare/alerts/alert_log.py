"""The alerts table: every version of every alert."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from compare.alerts.alert import Alert
from compare.store.client import Store

COLUMNS = tuple(field for field in Alert.__struct_fields__)


def write_alerts(store: Store, alerts: Sequence[Alert]) -> None:
    """Store these versions. Written again they replace themselves."""
    if not alerts:
        return
    now = datetime.now(UTC)
    rows = [(*msgspec.structs.astuple(alert), now) for alert in alerts]
    store.insert("alerts", (*COLUMNS, "recorded_at"), rows)


def write_missing(store: Store, experiment: str, alerts: Sequence[Alert]) -> None:
    """Store those of these versions that are not there. The others keep the time at which they were stored.

    Raises what the store raises.
    """
    if not alerts:
        return
    rows = store.query(
        "SELECT alert_id, version FROM alerts FINAL WHERE experiment = {experiment:String}"
        " AND alert_id IN {ids:Array(String)}",
        {"experiment": experiment, "ids": [alert.alert_id for alert in alerts]},
    ).rows
    known = {(str(alert_id), int(version)) for alert_id, version in rows}
    write_alerts(store, [alert for alert in alerts if (alert.alert_id, alert.version) not in known])


class Stored(msgspec.Struct, frozen=True):
    """When an alert was raised and resolved by the clock (UTC): its versions were stored then.

    Its own `fired_at` and `resolved_at` are of pairs, which may have been mirrored long before.
    """

    raised_at: datetime
    resolved_at: datetime | None


def read_stored(store: Store, experiment: str, alert_ids: Sequence[str]) -> dict[str, Stored]:
    """When each of these alerts was stored, by id. Raises what the store raises."""
    rows = store.query(
        "SELECT alert_id, min(recorded_at), minOrNullIf(recorded_at, state = 'resolved') FROM alerts"
        " WHERE experiment = {experiment:String} AND alert_id IN {ids:Array(String)} GROUP BY alert_id",
        {"experiment": experiment, "ids": list(alert_ids)},
    ).rows
    return {str(alert_id): Stored(raised_at, resolved_at) for alert_id, raised_at, resolved_at in rows}


def read_current(store: Store, experiment: str, since: datetime) -> list[Alert]:
    """Every alert as it is now that fires or that changed since then. Raises what the store raises."""
    rows = store.query(
        f"SELECT {', '.join(COLUMNS)}, recorded_at FROM alerts FINAL WHERE experiment = {{experiment:String}}"
        " ORDER BY alert_id, version DESC LIMIT 1 BY alert_id",
        {"experiment": experiment},
    ).rows
    return [
        msgspec.convert(dict(zip(COLUMNS, row[:-1], strict=True)), Alert)
        for row in rows
        if row[COLUMNS.index("state")] == "firing" or row[-1] > since
    ]
