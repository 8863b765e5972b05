"""Orders of people to a running service, kept in the store: pause and resume."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, Literal

import msgspec

from compare.store.client import Store


class Scope(msgspec.Struct, frozen=True, order=True):
    """Whom an order concerns. Empty names mean all."""

    experiment: str = ""
    endpoint_name: str = ""

    def __str__(self) -> str:
        endpoint = f'endpoint "{self.endpoint_name}"' if self.endpoint_name else "every endpoint"
        return f'{endpoint} of experiment "{self.experiment}"' if self.experiment else endpoint

    def covers(self, experiment: str, endpoint_name: str) -> bool:
        """Whether an order of this scope concerns that endpoint in that experiment."""
        return self.experiment in ("", experiment) and self.endpoint_name in ("", endpoint_name)


class Pause(msgspec.Struct, frozen=True):
    """A pause that holds."""

    scope: Scope
    since: datetime
    ordered_by: str
    reason: str

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{self.scope}, since {self.since:%Y-%m-%d %H:%M:%S} UTC by {self.ordered_by}{why}"


def order(
    store: Store, action: Literal["pause", "resume"], scope: Scope, *, ordered_by: str, reason: str = ""
) -> None:
    """Give an order. The store's clock dates it. Raises what the store raises."""
    row = {
        "experiment": scope.experiment,
        "endpoint_name": scope.endpoint_name,
        "action": action,
        "ordered_by": ordered_by,
        "reason": " ".join(reason.split()),
    }
    _insert(store, row)


def pauses(store: Store) -> list[Pause]:
    """The pauses that hold now, by scope. Raises what the store raises."""
    rows = store.query(
        "SELECT experiment, endpoint_name, max(ordered_at), argMax(ordered_by, ordered_at),"
        " argMax(reason, ordered_at) FROM controls WHERE isNull(`partition`)"
        " GROUP BY experiment, endpoint_name"
        " HAVING argMax(action, ordered_at) = 'pause' ORDER BY experiment, endpoint_name"
    ).rows
    return [Pause(Scope(str(row[0]), str(row[1])), row[2], str(row[3]), str(row[4])) for row in rows]


def let_go(store: Store, experiment: str, partition: int, *, ordered_by: str) -> None:
    """Order that a partition goes on that is held for its dead letters. Raises what the store raises."""
    row = {"experiment": experiment, "action": "resume", "partition": partition, "ordered_by": ordered_by}
    _insert(store, row)


def let_go_since(store: Store, experiment: str, since_us: int) -> list[tuple[int, int]]:
    """Return the partitions that were let go after `since_us`, each with the time of its last order.

    Times are Unix microseconds of the store's clock. Raises what the store raises.
    """
    rows = store.query(
        "SELECT `partition`, max(toUnixTimestamp64Micro(ordered_at)) AS last FROM controls"
        " WHERE experiment IN ('', {experiment:String}) AND isNotNull(`partition`)"
        " AND toUnixTimestamp64Micro(ordered_at) > {since:Int64} GROUP BY `partition` ORDER BY `partition`",
        {"experiment": experiment, "since": since_us},
    ).rows
    return [(int(row[0]), int(row[1])) for row in rows]


def _insert(store: Store, row: dict[str, Any]) -> None:
    # The same order given again is another order: without a token of its own the store would drop it.
    store.insert("controls", tuple(row), [tuple(row.values())], dedup_token=uuid.uuid4().hex)
