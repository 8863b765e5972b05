"""Orders of people to a running service, kept in the store: pause and resume."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

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
    store.insert("controls", tuple(row), [tuple(row.values())])


def pauses(store: Store) -> list[Pause]:
    """The pauses that hold now, by scope. Raises what the store raises."""
    rows = store.query(
        "SELECT experiment, endpoint_name, max(ordered_at), argMax(ordered_by, ordered_at),"
        " argMax(reason, ordered_at) FROM controls GROUP BY experiment, endpoint_name"
        " HAVING argMax(action, ordered_at) = 'pause' ORDER BY experiment, endpoint_name"
    ).rows
    return [Pause(Scope(str(row[0]), str(row[1])), row[2], str(row[3]), str(row[4])) for row in rows]
