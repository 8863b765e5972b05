"""Rollbacks as a person reads them: what holds, why, who was told, what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from compare.rollback.approve import Approval, read_approvals
from compare.rollback.condition import Condition, Conditions
from compare.rollback.decisions import Decision, Evaluation, read_decisions, read_evaluations
from compare.rollback.hysteresis import GAP_INTERVALS
from compare.rollback.snapshots import Snapshot, read_snapshots
from compare.rollback.tell import told_of, untried_of
from compare.store.asked import Asked
from compare.store.client import Store
from compare.visible import visible_block, visible_line

NOT_CALLED, CALLED, UNKNOWN = 0, 1, 3
"""Exit codes of `gnomon rollback status`; 2 is an error's."""
_SHOWN_TARGETS = 5
_FORMULA = "(A and B) or C"


class Told(msgspec.Struct, frozen=True):
    """One sink and one change of a call."""

    event: str
    sink: str
    is_delivered: bool
    attempts: int
    error: str
    attempted_at: datetime


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate as it stands: `answer` is `called`, `not_called` or `unknown`, and `why` in one line."""

    evaluation: Evaluation
    answer: str
    why: str
    is_watched: bool
    call: Decision | None
    told: list[Told]
    sinks: list[str] | None
    """That are to be told, by the settings; None where these are not known."""
    untried: list[tuple[str, str]]
    """(event, sink) of what is to be told and was never tried."""
    approvals: list[Approval]
    targets: list[Snapshot]

    @property
    def exit_code(self) -> int:
        """Of this candidate."""
        return {"called": CALLED, "not_called": NOT_CALLED}.get(self.answer, UNKNOWN)


def read_status(
    store: Store, experiment: str, candidate: str, now: datetime, sinks: Mapping[str, list[str]] | None = None
) -> list[Status]:
    """Return how each candidate stands. A call that nobody looks at any more still holds.

    `sinks` are those of each experiment whose settings are known.
    """
    known = sinks or {}
    return [
        status_of(store, evaluation, now, known.get(evaluation.experiment))
        for evaluation in read_evaluations(store, experiment, candidate)
    ]


def status_of(store: Asked, evaluation: Evaluation, now: datetime, sinks: list[str] | None = None) -> Status:
    """Return how a candidate stands that was last looked at so. `sinks` are its experiment's, if known."""
    age = now - evaluation.evaluated_at
    is_watched = age < timedelta(seconds=(GAP_INTERVALS + 1) * evaluation.interval_s)
    call, changes = None, []
    if evaluation.is_called:
        changes = _changes(store, evaluation.decision_id)
        call = changes[-1]
        answer, why = "called", call.summary
    elif not is_watched:
        answer, why = "unknown", f"nobody has looked for {_age(age)}: is gnomon run or gnomon watch up?"
    elif evaluation.says == "unknown":
        answer, why = "unknown", evaluation.conditions.reason()
    else:
        answer, why = "not_called", evaluation.conditions.reason()
    targets = [one for one in read_snapshots(store, evaluation.experiment) if one.why_no_target() is None]
    told = _told(store, evaluation.decision_id)
    return Status(
        evaluation=evaluation,
        answer=answer,
        why=why,
        is_watched=is_watched,
        call=call,
        told=told,
        sinks=sinks,
        untried=_untried(changes, told, sinks, now),
        approvals=read_approvals(store, evaluation.decision_id) if evaluation.decision_id else [],
        targets=targets[:_SHOWN_TARGETS],
    )


def status_text(status: Status, now: datetime) -> str:
    """Return one candidate's standing as lines; the first says all that must be known."""
    evaluation, call = status.evaluation, status.call
    name = f"candidate {evaluation.candidate} of experiment {evaluation.experiment}"
    if status.answer == "called":
        since = "" if call is None or call.called_at is None else f" since {_utc(call.called_at)}"
        head = f"ROLLBACK CALLED FOR: {name}{since} ({evaluation.decision_id})"
    elif status.answer == "unknown":
        head = f"UNKNOWN whether a rollback is called for: {name}"
    else:
        head = f"no rollback called for: {name}"
    lines = [head, f"  why: {visible_line(status.why)}"]
    lines += [f"  {line}" for line in condition_lines(evaluation.conditions)]
    row = {"yes": evaluation.held, "no": evaluation.clear}.get(evaluation.says)
    says = f"{evaluation.says}" if row is None else f"{evaluation.says}, {row} in a row"
    age = _age(now - evaluation.evaluated_at)
    lines.append(
        f"  {_FORMULA} says {says}; evaluated {age} ago by {evaluation.evaluated_by}"
        f"{'' if status.is_watched else '  <- NOT WATCHED NOW'}"
    )
    if call is None:
        return "\n".join(lines)
    lines += [f"  told: {line}" for line in _told_lines(status.told, status.sinks, status.untried)]
    lines += [f"  approved: {_approval_line(one)}" for one in status.approvals]
    if not status.approvals:
        lines.append("  approved: by nobody yet")
        names = ", ".join(one.name for one in status.targets)
        lines.append(f"  targets: {names or 'none: no snapshot has a golden run that passed'}")
        target = status.targets[0].name if status.targets else "NAME"
        lines.append(f"  next: gnomon rollback approve {evaluation.decision_id} --snapshot {target}")
    return "\n".join(lines)


def condition_lines(conditions: Conditions) -> list[str]:
    """Return a line for each condition."""
    return [
        f"{letter}  {one.state:<8} {visible_line(one.summary, 400)}" for letter, one in conditions.items()
    ]


def explained(
    store: Store, decision: Decision, now: datetime, sinks: list[str] | None = None
) -> dict[str, Any]:
    """Return all that is kept of a call, as plain JSON values; its changes are oldest first.

    `sinks` are those of the experiment's settings; None where these are not known.
    """
    changes, told = _changes(store, decision.decision_id), _told(store, decision.decision_id)
    return {
        "call": plain(changes[-1]),
        "changes": [plain(one) for one in changes],
        "told": msgspec.to_builtins(told),
        "sinks": sinks,
        "untried": _untried(changes, told, sinks, now),
        "approvals": msgspec.to_builtins(read_approvals(store, decision.decision_id)),
    }


def explain_text(store: Store, decision: Decision, now: datetime, sinks: list[str] | None = None) -> str:
    """Return all that is kept of a call as lines. `sinks` as `explained` takes them."""
    changes = _changes(store, decision.decision_id)
    first, last = changes[0], changes[-1]
    state = "holds" if last.is_called else f"ended at {_utc(last.decided_at)}"
    lines = [
        f"call {first.decision_id}: rollback of candidate {first.candidate} of experiment {first.experiment}",
        f"called at {_utc(first.decided_at)}; {state}",
        f"why: {visible_line(first.summary)}",
        f"settings {first.settings_hash}; candidate served {first.served_hash or 'it is not known what'}",
        "",
        f"conditions at the call, {_FORMULA}:",
    ]
    for letter, one in first.conditions.items():
        lines.append(f"  {letter}  {one.state:<8} {visible_line(one.summary, 400)}")
        lines += [f"       {line}" for line in _evidence_lines(one)]
    if changes[1:]:
        lines += ["", "what changed since:"]
        for change in changes[1:]:
            states = f"A {change.condition_a}, B {change.condition_b}, C {change.condition_c}"
            lines.append(f"  {_utc(change.decided_at)}  {change.event:<10}  {states}")
    lines += ["", "told:"]
    told = _told(store, first.decision_id)
    lines += [f"  {line}" for line in _told_lines(told, sinks, _untried(changes, told, sinks, now))]
    lines += ["", "approved:"]
    for approval in read_approvals(store, first.decision_id):
        lines.append(f"  {_approval_line(approval)}")
        lines += [f"    | {line}" for line in visible_block(approval.output, 4096).splitlines()]
    if lines[-1] == "approved:":
        lines.append("  by nobody")
    return "\n".join(lines)


def snapshot_text(snapshot: Snapshot) -> str:
    """Return all of a snapshot, a line each; what is not told is left out."""
    values = msgspec.to_builtins(snapshot)
    width = max(map(len, values))
    lines = [
        f"{key:<{width}}  {visible_line(str(value))}"
        for key, value in values.items()
        if value not in (None, "")
    ]
    return "\n".join([*lines, f"{'target':<{width}}  {snapshot.why_no_target() or 'yes'}"])


def snapshot_rows(snapshots: Sequence[Snapshot]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return columns and rows of the list."""
    columns = (
        "name",
        "experiment",
        "model",
        "quantization",
        "image",
        "golden",
        "score",
        "target",
        "added_at",
    )
    rows = [
        (
            one.name,
            one.experiment,
            one.model or "",
            one.quantization or "",
            one.image or "",
            one.golden_status or "",
            one.golden_mean_score,
            "yes" if one.why_no_target() is None else "no",
            _utc(one.added_at),
        )
        for one in snapshots
    ]
    return columns, rows


def plain(decision: Decision) -> dict[str, Any]:
    """Return a decision as plain JSON values, its evidence opened."""
    values: dict[str, Any] = msgspec.to_builtins(decision)
    return values | {"evidence": msgspec.json.decode(decision.evidence)}


def plain_status(status: Status) -> dict[str, Any]:
    """Return a status as plain JSON values, its evidence opened."""
    values: dict[str, Any] = msgspec.to_builtins(status)
    values["evaluation"]["evidence"] = msgspec.json.decode(status.evaluation.evidence)
    values["call"] = None if status.call is None else plain(status.call)
    return values | {"exit_code": status.exit_code}


def _evidence_lines(condition: Condition) -> list[str]:
    """Return the evidence as `key: value`, a list's items a line each."""
    lines = []
    for key, value in condition.evidence.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines += [f"{key}: {_short(one)}" for one in value]
        else:
            lines.append(f"{key}: {_short(value)}")
    return lines


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return visible_line(text, 300)


def _told(store: Asked, decision_id: str) -> list[Told]:
    return [Told(*row) for row in told_of(store, decision_id)] if decision_id else []


def _untried(
    changes: Sequence[Decision], told: Sequence[Told], sinks: list[str] | None, now: datetime
) -> list[tuple[str, str]]:
    return untried_of(changes, {(one.event, one.sink) for one in told}, sinks or [], now)


def _changes(store: Asked, decision_id: str) -> list[Decision]:
    """Return the changes of a call, oldest first."""
    return list(reversed(read_decisions(store, decision_id=decision_id, limit=1000)))


def _told_lines(
    told: Sequence[Told], sinks: list[str] | None, untried: Sequence[tuple[str, str]]
) -> list[str]:
    """Return a line for each telling that was tried, and for each that is still to come; at least one."""
    lines = [_told_line(one) for one in told]
    lines += [f"{sink} of {event}: NOT YET TRIED; the next evaluation does" for event, sink in untried]
    if lines:
        return lines
    if sinks is None:
        return ["nobody so far; the settings say who is to be (--config)"]
    return ["nobody; it was never tried" if sinks else "nobody: the settings name no sink for it"]


def _told_line(told: Told) -> str:
    how = "received" if told.is_delivered else f"NOT received: {visible_line(told.error, 200)}"
    return f"{told.sink} of {told.event}, {_utc(told.attempted_at)}: {how}"


def _approval_line(approval: Approval) -> str:
    command = {
        "done": "command succeeded",
        "failed": "COMMAND FAILED",
        "started": "COMMAND RUNS, OR WAS INTERRUPTED",
        "recorded": "no command is configured",
    }[approval.status]
    note = f" ({visible_line(approval.note)})" if approval.note else ""
    return (
        f"by {visible_line(approval.approved_by)} at {_utc(approval.approved_at)}, "
        f"to snapshot {approval.snapshot}{note}: {command}"
    )


def _utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _age(age: timedelta) -> str:
    seconds = max(0, int(age.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
