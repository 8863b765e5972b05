"""The alerts table: every version of every alert, and which of them the webhook has received."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from compare.alerts.alert import Alert
from compare.alerts.webhook import Delivery
from compare.store.client import Store

COLUMNS = tuple(field for field in Alert.__struct_fields__)
DELIVERY_COLUMNS = (
    "experiment",
    "alert_id",
    "version",
    "state",
    "sink",
    "is_delivered",
    "attempts",
    "error",
    "attempted_at",
)
DELIVERY_DAYS = 7
"""An alert older than this is history: a new receiver is not flooded with it."""


def write_alerts(store: Store, alerts: Sequence[Alert]) -> None:
    """Store these versions. Written again they replace themselves."""
    if not alerts:
        return
    now = datetime.now(UTC)
    rows = []
    for alert in alerts:
        values = msgspec.structs.asdict(alert)
        values["families"] = [msgspec.structs.astuple(one) for one in alert.families]
        values["worst_pairs"] = [msgspec.structs.astuple(pair) for pair in alert.worst_pairs]
        rows.append((*values.values(), now))
    store.insert("alerts", (*COLUMNS, "recorded_at"), rows)


def undelivered(store: Store, experiment: str, sink: str) -> list[Alert]:
    """Alert versions of the last days that `sink` has not received, oldest first."""
    rows = store.query(
        f"SELECT {', '.join(COLUMNS)} FROM alerts FINAL"
        " WHERE experiment = {experiment:String} AND recorded_at > {since:DateTime64(3, 'UTC')}"
        " AND (alert_id, version) NOT IN (SELECT alert_id, version FROM alert_deliveries FINAL"
        " WHERE experiment = {experiment:String} AND sink = {sink:String} AND is_delivered)"
        " ORDER BY fired_at, alert_id, version",
        {
            "experiment": experiment,
            "sink": sink,
            "since": f"{(datetime.now(UTC) - timedelta(days=DELIVERY_DAYS)).timestamp():.3f}",
        },
    ).rows
    return [msgspec.convert(dict(zip(COLUMNS, row, strict=True)), Alert) for row in rows]


def record_delivery(store: Store, alert: Alert, sink: str, delivery: Delivery) -> None:
    """Note how sending this version to `sink` went."""
    row = (
        alert.experiment,
        alert.alert_id,
        alert.version,
        alert.state,
        sink,
        not delivery.error,
        delivery.attempts,
        delivery.error,
        datetime.now(UTC),
    )
    store.insert("alert_deliveries", DELIVERY_COLUMNS, [row])


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
