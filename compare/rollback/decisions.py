"""What was decided, as it is stored: each change once, and the last evaluation of each candidate."""

from __future__ import annotations

import hashlib
import os
import socket
from datetime import UTC, datetime
from typing import Literal

import msgspec

from compare.rollback.condition import Conditions, Says, State, from_json, to_json
from compare.rollback.hysteresis import Standing
from compare.store.asked import Asked
from compare.store.client import Store

Event = Literal["called", "cleared", "conditions"]
"""A call began, it ended, or only a condition changed."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `rollback_decisions_v1`. Times are UTC. `evidence` is the JSON of `Conditions`."""

    experiment: str
    candidate: str
    number: int
    decision_id: str
    event: Event
    is_called: bool
    condition_a: State
    condition_b: State
    condition_c: State
    decided_at: datetime
    called_at: datetime | None
    summary: str
    evidence: str
    settings_hash: str
    served_hash: str

    @property
    def conditions(self) -> Conditions:
        """The conditions as they were then."""
        return from_json(self.evidence)


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """The last look at a candidate: one row of `rollback_state_v1`. Times are UTC."""

    experiment: str
    candidate: str
    evaluated_at: datetime
    evaluated_by: str
    interval_s: float
    says: Says
    is_called: bool
    decision_id: str
    held: int
    clear: int
    condition_a: State
    condition_b: State
    condition_c: State
    evidence: str
    version: int = 0

    @property
    def conditions(self) -> Conditions:
        """The conditions as they were then."""
        return from_json(self.evidence)

    @property
    def standing(self) -> Standing:
        """Where the fold stood after it."""
        return Standing(self.is_called, self.held, self.clear, self.evaluated_at)


_DECISION_COLUMNS = tuple(Decision.__struct_fields__)
_STATE_COLUMNS = tuple(Evaluation.__struct_fields__)


def decision_id(experiment: str, candidate: str, called_at: datetime) -> str:
    """Return a call's id, short enough to be typed: the same for the same call."""
    named = msgspec.json.encode([experiment, candidate, called_at])
    return "rb-" + hashlib.sha256(named).hexdigest()[:10]


def who() -> str:
    """Return this process as `host:pid`."""
    return f"{socket.gethostname()}:{os.getpid()}"


def write_decision(store: Store, decision: Decision, version: int) -> None:
    """Store one change. Written again with a later version it replaces itself."""
    row = msgspec.structs.asdict(decision) | {"ingested_at": datetime.now(UTC), "version": version}
    store.insert("rollback_decisions", tuple(row), [tuple(row.values())])


def write_evaluation(store: Store, evaluation: Evaluation, looks: str) -> None:
    """Store the last evaluation in place of the one before it, and with it the looks (`kept_looks`)."""
    row = msgspec.structs.asdict(evaluation) | {"looks": looks}
    store.insert("rollback_state", tuple(row), [tuple(row.values())])


def last_decision(store: Store, experiment: str, candidate: str) -> Decision | None:
    """Return the newest change of a candidate; None before the first."""
    found = read_decisions(store, experiment, candidate, limit=1)
    return found[0] if found else None


def read_decisions(
    store: Asked,
    experiment: str = "",
    candidate: str = "",
    *,
    decision_id: str = "",
    calls_only: bool = False,
    limit: int = 100,
) -> list[Decision]:
    """Return changes, newest first. Empty names mean any; an id may be cut short."""
    rows = store.query(
        f"SELECT {', '.join(_DECISION_COLUMNS)} FROM rollback_decisions_v1"
        " WHERE ({experiment:String} = '' OR experiment = {experiment:String})"
        " AND ({candidate:String} = '' OR candidate = {candidate:String})"
        " AND startsWith(decision_id, {id:String})"
        " AND ({calls_only:Bool} = false OR event != 'conditions')"
        " ORDER BY decided_at DESC, experiment, candidate, number DESC LIMIT {limit:UInt32}",
        {
            "experiment": experiment,
            "candidate": candidate,
            "id": decision_id,
            "calls_only": calls_only,
            "limit": limit,
        },
    ).dicts()
    return [msgspec.convert(row, Decision) for row in rows]


def read_evaluations(store: Store, experiment: str = "", candidate: str = "") -> list[Evaluation]:
    """Return the last evaluation of each candidate. Empty names mean any."""
    rows = store.query(
        f"SELECT {', '.join(_STATE_COLUMNS)} FROM rollback_state FINAL"
        " WHERE ({experiment:String} = '' OR experiment = {experiment:String})"
        " AND ({candidate:String} = '' OR candidate = {candidate:String}) ORDER BY experiment, candidate",
        {"experiment": experiment, "candidate": candidate},
    ).dicts()
    return [msgspec.convert(row, Evaluation) for row in rows]


def decided(
    before: Decision | None,
    conditions: Conditions,
    standing: Standing,
    *,
    experiment: str,
    candidate: str,
    at: datetime,
    settings_hash: str,
    served_hash: str,
) -> Decision | None:
    """Return the change since `before`, None if there is none. Before anything was decided all is quiet."""
    was_called = before is not None and before.is_called
    states = ("off", "off", "off")
    if before is not None:
        states = (before.condition_a, before.condition_b, before.condition_c)
    if was_called == standing.is_called and (states == conditions.states):
        return None
    event: Event = "conditions"
    called_at, name = (None, "") if before is None else (before.called_at, before.decision_id)
    if standing.is_called and not was_called:
        event, called_at, name = "called", at, decision_id(experiment, candidate, at)
    elif was_called and not standing.is_called:
        event = "cleared"
    elif not was_called:
        called_at, name = None, ""
    a, b, c = conditions.states
    return Decision(
        experiment=experiment,
        candidate=candidate,
        number=1 if before is None else before.number + 1,
        decision_id=name,
        event=event,
        is_called=standing.is_called,
        condition_a=a,
        condition_b=b,
        condition_c=c,
        decided_at=at,
        called_at=called_at,
        summary=conditions.reason(),
        evidence=to_json(conditions),
        settings_hash=settings_hash,
        served_hash=served_hash,
    )
