"""Telling people of a call and of its end: each sink once, however often the service is started again.

What is to be told are the stored decisions, and whether it was told is stored too. A kill between a sink's
answer and our note of it makes the sink be told again with the same idempotency key; nothing else does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

from compare.alerts.notice import Delivery
from compare.rollback.decisions import Decision, read_decisions
from compare.row_values import microseconds
from compare.store.asked import Asked
from compare.store.client import Store

TELL_DAYS = 7
"""A call that ended before is history: a new sink is not told of it."""
MAX_ATTEMPTS = 50
"""Runs that try a sink that refuses; one that is down is tried until `TELL_DAYS`."""

NUMBERS = {"called": 1, "cleared": 2}
"""Of the two notices of a call."""

_log = logging.getLogger(__name__)


class Teller(Protocol):
    """One sink. `name` is its kind and its name in the settings."""

    @property
    def name(self) -> str:
        """`kind:name`, as it is noted."""

    def tell(self, decision: Decision) -> Delivery:
        """Send it with the key of `key_of`; blocks for some seconds at most. Raises nothing."""

    def keep_alive(self, calls: Sequence[Decision]) -> Delivery | None:
        """Send calls that hold again where they would end by themselves; None: not needed. Raises nothing."""


def key_of(decision: Decision) -> str:
    """Return the idempotency key of a beginning or an end of a call."""
    return f"{decision.decision_id}:{NUMBERS[decision.event]}"


def tell(
    store: Store, experiment: str, tellers: Sequence[Teller], *, check: Callable[[], None] = lambda: None
) -> int:
    """Tell every sink what it was not told yet, oldest first; return how much was delivered.

    A sink is told of the end of a call only after its beginning. `check` is called before each telling and
    raises where another process may be at it. Raises what the store raises.
    """
    if not tellers:
        return 0
    since = datetime.now(UTC) - timedelta(days=TELL_DAYS)
    known = read_decisions(store, experiment, calls_only=True, limit=1000)
    ended = {one.decision_id for one in known if one.event == "cleared"}
    changes = [one for one in reversed(known) if one.decided_at > since or one.decision_id not in ended]
    if not changes:
        return 0
    noted = _noted(store, experiment)
    delivered = 0
    for teller in tellers:
        waiting: set[str] = set()
        for decision in changes:
            is_delivered, attempts = noted.get(
                (decision.decision_id, decision.event, teller.name), (False, 0)
            )
            if is_delivered or attempts >= MAX_ATTEMPTS or decision.decision_id in waiting:
                continue
            check()
            delivery = teller.tell(decision)
            # A receiver that was down is no receiver that refused: it is tried until it is back.
            count = attempts + (0 if delivery.is_down else 1)
            _note(store, decision, teller.name, delivery, count)
            if not delivery.error:
                delivered += 1
                continue
            _log.warning("rollback %s not told: %s; tried again", key_of(decision), delivery.error)
            waiting.add(decision.decision_id)
            if delivery.is_down:
                break
        holding = [
            one
            for one in changes
            if one.decision_id not in ended
            and noted.get((one.decision_id, one.event, teller.name), (False, 0))[0]
        ]
        again = teller.keep_alive(holding) if holding else None
        if again is not None and again.error:
            _log.warning("rollback not kept alive: %s", again.error)
    return delivered


def _noted(store: Store, experiment: str) -> dict[tuple[str, str, str], tuple[bool, int]]:
    rows = store.query(
        "SELECT decision_id, event, sink, is_delivered, attempts FROM rollback_deliveries FINAL"
        " WHERE experiment = {experiment:String}",
        {"experiment": experiment},
    ).rows
    return {(row[0], row[1], row[2]): (bool(row[3]), int(row[4])) for row in rows}


def _note(store: Store, decision: Decision, sink: str, delivery: Delivery, attempts: int) -> None:
    now = datetime.now(UTC)
    row = {
        "experiment": decision.experiment,
        "candidate": decision.candidate,
        "decision_id": decision.decision_id,
        "event": decision.event,
        "sink": sink,
        "is_delivered": not delivery.error,
        "attempts": attempts,
        "error": delivery.error,
        "attempted_at": now,
        "version": microseconds(now),
    }
    store.insert("rollback_deliveries", tuple(row), [tuple(row.values())])


def told_of(store: Asked, decision_id: str) -> list[tuple[str, str, bool, int, str, datetime]]:
    """Return (event, sink, is_delivered, attempts, error, attempted_at) of a call, by time."""
    rows = store.query(
        "SELECT event, sink, is_delivered, attempts, error, attempted_at FROM rollback_deliveries_v1"
        " WHERE decision_id = {id:String} ORDER BY attempted_at, sink",
        {"id": decision_id},
    ).rows
    return [(row[0], row[1], bool(row[2]), int(row[3]), row[4], row[5]) for row in rows]


def untried_of(
    changes: Sequence[Decision], tried: Container[tuple[str, str]], sinks: Sequence[str], now: datetime
) -> list[tuple[str, str]]:
    """Return (event, sink) of what is still to be told of a call and was never tried, in order. Pure.

    `changes` are of one call, oldest first; `tried` are (event, sink); `sinks` those that are to be told.
    """
    has_ended = any(one.event == "cleared" for one in changes)
    return [
        (one.event, sink)
        for one in changes
        if one.event in NUMBERS and (one.decided_at > now - timedelta(days=TELL_DAYS) or not has_ended)
        for sink in sinks
        if (one.event, sink) not in tried
    ]
