"""The tables `alert_notices` and `notice_deliveries`: what is told, and which sink has received it."""

from __future__ import annotations

from datetime import datetime

import msgspec

from compare.alerts.notice import Delivery, Notice
from compare.store.client import Store
from ingest.errors import FatalError

_COLUMNS = (
    "experiment",
    "candidate",
    "group_key",
    "number",
    "reason",
    "state",
    "severity",
    "category",
    "alert_ids",
    "created_at",
    "content",
)
_DELIVERY_COLUMNS = (
    "experiment",
    "group_key",
    "number",
    "sink",
    "is_delivered",
    "is_down",
    "attempts",
    "error",
    "attempted_at",
)


class Attempt(msgspec.Struct, frozen=True):
    """How sending one notice to one sink stands: all attempts so far, and the time of the last.

    `is_down`: the sink could take nothing then; else it refused this notice.
    """

    is_delivered: bool
    is_down: bool
    attempts: int
    attempted_at: datetime

    @property
    def is_refused(self) -> bool:
        """Whether the sink was there and did not want it."""
        return self.attempts > 0 and not self.is_delivered and not self.is_down


def write_notice(store: Store, notice: Notice) -> None:
    """Store a notice. The same again replaces itself. Raises what the store raises."""
    row = (
        notice.experiment,
        notice.candidate,
        notice.group_key,
        notice.number,
        notice.reason,
        notice.state,
        notice.severity,
        notice.category,
        [member.alert_id for member in notice.members],
        notice.created_at,
        msgspec.json.encode(notice).decode(),
    )
    store.insert("alert_notices", _COLUMNS, [row])


def read_notices(store: Store, experiment: str, group_keys: list[str]) -> dict[str, list[Notice]]:
    """The notices of these groups, oldest first. Raises FatalError for one that cannot be read."""
    rows = store.query(
        "SELECT group_key, number, content FROM alert_notices FINAL"
        " WHERE experiment = {experiment:String} AND group_key IN {keys:Array(String)}"
        " ORDER BY group_key, number",
        {"experiment": experiment, "keys": group_keys},
    ).rows
    found: dict[str, list[Notice]] = {}
    for key, number, content in rows:
        found.setdefault(str(key), []).append(_notice(experiment, str(key), int(number), str(content)))
    return found


def read_to_send(store: Store, experiment: str, since: datetime) -> list[Notice]:
    """Every notice that was made since then, oldest first. Raises FatalError for one that cannot be read."""
    rows = store.query(
        "SELECT group_key, number, content FROM alert_notices FINAL"
        " WHERE experiment = {experiment:String} AND created_at > {since:DateTime64(3, 'UTC')}"
        " ORDER BY created_at, group_key, number",
        {"experiment": experiment, "since": f"{since.timestamp():.3f}"},
    ).rows
    return [_notice(experiment, str(key), int(number), str(content)) for key, number, content in rows]


def read_attempts(store: Store, experiment: str, sink: str, since: datetime) -> dict[str, Attempt]:
    """How the notices stand with a sink, by `Notice.key`. Raises what the store raises."""
    rows = store.query(
        "SELECT group_key, number, is_delivered, is_down, attempts, attempted_at FROM notice_deliveries FINAL"
        " WHERE experiment = {experiment:String} AND sink = {sink:String}"
        " AND attempted_at > {since:DateTime64(3, 'UTC')}",
        {"experiment": experiment, "sink": sink, "since": f"{since.timestamp():.3f}"},
    ).rows
    return {f"{row[0]}:{row[1]}": Attempt(bool(row[2]), bool(row[3]), int(row[4]), row[5]) for row in rows}


def record_delivery(
    store: Store, notice: Notice, sink: str, delivery: Delivery, *, earlier: int, now: datetime
) -> None:
    """Note how sending went; `earlier` attempts were noted before. Raises what the store raises."""
    row = (
        notice.experiment,
        notice.group_key,
        notice.number,
        sink,
        not delivery.error,
        delivery.is_down,
        earlier + delivery.attempts,
        delivery.error,
        now,
    )
    store.insert("notice_deliveries", _DELIVERY_COLUMNS, [row])


def _notice(experiment: str, key: str, number: int, content: str) -> Notice:
    try:
        return msgspec.json.decode(content, type=Notice)
    except msgspec.MsgspecError as error:
        raise FatalError(f"alert_notices row {experiment} {key} {number}: {error}") from error
