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
