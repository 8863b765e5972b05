"""What served the models before a change and after it: a deploy that happens to be the cause is named."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from compare.alerts.alert import Alert
from compare.alerts.evidence import ServedChange
from compare.store.client import Store
from ingest.served import Served

LATE = timedelta(minutes=10)
"""Endpoints are asked every five minutes, so a new build may be seen so much later than it served."""
TOLD = Served.__struct_fields__
"""Columns of `served_v1` that say what is served."""
_LONGEST = 60
MOST_CHANGES = 10


def served_changes(
    store: Store, alert: Alert, earliest: datetime, latest: datetime
) -> tuple[ServedChange, ...]:
    """What the candidate, the reference and production told that is new about when the change began.

    `earliest` and `latest` bound the start by the service's clock. Only what differs is put in words.
    Raises what the store raises.
    """
    rows = store.query(
        f"SELECT role, endpoint_name, seen_at, {', '.join(TOLD)} FROM served_v1"
        " WHERE experiment = {experiment:String} AND seen_at <= {latest:DateTime64(3, 'UTC')}"
        " AND (role != 'candidate' OR endpoint_name = {candidate:String})"
        " ORDER BY role = 'production', role, endpoint_name, seen_at",
        {
            "experiment": alert.experiment,
            "candidate": alert.candidate,
            "latest": f"{(latest + LATE).timestamp():.3f}",
        },
    ).rows
    found = [one for one in changes_among(rows) if one.seen_at >= earliest - LATE]
    return tuple(found[:MOST_CHANGES])


def changes_among(rows: Sequence[Sequence[Any]]) -> list[ServedChange]:
    """What each endpoint told that differs from what it told before.

    `rows` are role, endpoint_name, seen_at and TOLD, in the order of the first three within an endpoint.
    """
    found = []
    for (role, name), group in groupby(rows, key=lambda row: (str(row[0]), str(row[1]))):
        told = list(group)
        for before, after in zip(told, told[1:], strict=False):
            if before[3:] != after[3:]:
                found.append(ServedChange(role, name, after[2], *_difference(before[3:], after[3:])))
    return found


def _difference(before: Sequence[Any], after: Sequence[Any]) -> tuple[str, str]:
    """Both sides' values where they differ, as `field value, field value`."""
    differing = [(name, old, new) for name, old, new in zip(TOLD, before, after, strict=True) if old != new]
    return (
        ", ".join(f"{name} {_short(old)}" for name, old, _ in differing),
        ", ".join(f"{name} {_short(new)}" for name, _, new in differing),
    )


def _short(value: Any) -> str:
    text = "not told" if value is None else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
