"""A person approves a call: recorded, then the configured command runs once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import msgspec

from compare.rollback.command import run_command
from compare.rollback.decisions import Decision, read_decisions
from compare.rollback.snapshots import Snapshot
from compare.row_values import microseconds
from compare.store.asked import Asked
from compare.store.client import Store
from ingest.errors import FatalError
from ingest.settings_rollback import RollbackSettings

Status = Literal["started", "done", "failed", "recorded"]
"""`started`: the command runs, or was interrupted. `recorded`: there is no command."""

_LEAST_PREFIX = 6
"""Characters of an id that must be typed: `rb-` and three more."""


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `rollback_approvals_v1`. Times are UTC. `output` is the end of what the command printed."""

    experiment: str
    candidate: str
    decision_id: str
    attempt: int
    snapshot: str
    approved_by: str
    note: str
    approved_at: datetime
    status: Status
    exit_code: int | None = None
    output: str = ""
    finished_at: datetime | None = None

    @property
    def key(self) -> str:
        """The idempotency key that the command gets: the same for every attempt of one call."""
        return f"{self.decision_id}:approved"


def find_call(store: Store, decision_id: str) -> Decision:
    """Return the newest change of a call by its id, which may be cut short. Raises FatalError."""
    is_long = len(decision_id) >= _LEAST_PREFIX
    found = read_decisions(store, decision_id=decision_id, limit=1000) if is_long else []
    names = {one.decision_id for one in found}
    if len(names) > 1:
        raise FatalError(
            f"{decision_id!r} is the beginning of {len(names)} calls: {', '.join(sorted(names))}"
        )
    if not found:
        known = read_decisions(store, calls_only=True, limit=1)
        last = f"the last call is {known[0].decision_id}" if known else "no rollback was ever called for"
        raise FatalError(f"no call for rollback has the id {decision_id!r}; {last}")
    return found[0]


def last_call(store: Store) -> Decision:
    """Return the newest change of the last call. Raises FatalError if there was none."""
    for found in read_decisions(store, calls_only=True, limit=1):
        return find_call(store, found.decision_id)
    raise FatalError("no rollback was ever called for")


def read_approvals(store: Asked, decision_id: str) -> list[Approval]:
    """Return the approvals of a call, oldest first."""
    rows = store.query(
        f"SELECT {', '.join(Approval.__struct_fields__)} FROM rollback_approvals_v1"
        " WHERE decision_id = {id:String} ORDER BY attempt",
        {"id": decision_id},
    ).dicts()
    return [msgspec.convert(row, Approval) for row in rows]


def approve(
    store: Store,
    settings: RollbackSettings,
    decision: Decision,
    snapshot: Snapshot,
    *,
    approved_by: str,
    note: str = "",
    again: bool = False,
) -> Approval:
    """Record the approval and run `approve_command`; return how it went.

    The record is written before the command runs, so that a call whose command was interrupted is not taken
    for one that nobody approved. Raises FatalError, one line, for a call that has ended, a snapshot that may
    not be a target, and a call that was approved before; `again` allows the last where the command did not
    succeed.
    """
    if not decision.is_called:
        when = f"{decision.decided_at:%Y-%m-%d %H:%M:%S} UTC"
        raise FatalError(f"call {decision.decision_id} has ended, at {when}: there is nothing to approve")
    if snapshot.experiment != decision.experiment:
        raise FatalError(
            f"snapshot {snapshot.name} is of experiment {snapshot.experiment}, "
            f"call {decision.decision_id} of {decision.experiment}"
        )
    refusal = snapshot.why_no_target()
    if refusal is not None:
        raise FatalError(refusal)
    before = read_approvals(store, decision.decision_id)
    if before:
        _check_again(before[-1], again)
    approval = Approval(
        experiment=decision.experiment,
        candidate=decision.candidate,
        decision_id=decision.decision_id,
        attempt=before[-1].attempt + 1 if before else 1,
        snapshot=snapshot.name,
        approved_by=approved_by,
        note=" ".join(note.split()),
        approved_at=datetime.now(UTC),
        status="started" if settings.approve_command else "recorded",
    )
    _write(store, approval)
    if not settings.approve_command:
        return approval
    ran = run_command(
        settings.approve_command,
        approval_content(approval, decision, snapshot),
        timeout_s=settings.approve_timeout_s,
        environment={"GNOMON_IDEMPOTENCY_KEY": approval.key},
    )
    done = msgspec.structs.replace(
        approval,
        status="failed" if ran.problem else "done",
        exit_code=ran.exit_code,
        output="\n".join(part for part in (ran.problem, ran.output) if part),
        finished_at=datetime.now(UTC),
    )
    _write(store, done)
    return done


def approval_content(approval: Approval, decision: Decision, snapshot: Snapshot) -> bytes:
    """Return what the command gets on its standard input: JSON, schema `gnomon.rollback.approval/1`."""
    return msgspec.json.encode(
        {
            "schema": "gnomon.rollback.approval/1",
            "key": approval.key,
            "decision_id": decision.decision_id,
            "experiment": decision.experiment,
            "candidate": decision.candidate,
            "called_at": decision.called_at,
            "summary": decision.summary,
            "conditions": msgspec.Raw(decision.evidence.encode()),
            "snapshot": snapshot,
            "approved_by": approval.approved_by,
            "approved_at": approval.approved_at,
            "note": approval.note,
            "attempt": approval.attempt,
        }
    )


def _check_again(last: Approval, again: bool) -> None:
    told = (
        f"call {last.decision_id} was approved at {last.approved_at:%Y-%m-%d %H:%M:%S} UTC "
        f"by {last.approved_by}, to snapshot {last.snapshot}"
    )
    if last.status in ("done", "recorded"):
        raise FatalError(told)
    how = "did not succeed" if last.status == "failed" else "runs, or was interrupted"
    if not again:
        raise FatalError(f"{told}, and its command {how}; --again runs it once more")


def _write(store: Store, approval: Approval) -> None:
    row = msgspec.structs.asdict(approval) | {"version": microseconds(datetime.now(UTC))}
    store.insert("rollback_approvals", tuple(row), [tuple(row.values())])
