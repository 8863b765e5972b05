"""What people do about alerts: acknowledge them, silence them until a time, and take a silence back.

The command line and the explorer call the same functions. Actions are only added; what holds is read from
all of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from compare.alerts.alert import Alert
from compare.store.client import Store
from ingest.errors import SettingsError

LONGEST_SILENCE = timedelta(days=90)
"""Whoever means "for ever" should change a tolerance instead."""
LONGEST_TEXT = 2_000
_SHORTEST_PREFIX = 4


class Target(msgspec.Struct, frozen=True):
    """One alert, or a group of them where `alert_id` is empty."""

    experiment: str
    group_key: str
    alert_id: str = ""

    def __str__(self) -> str:
        return f"alert {self.alert_id}" if self.alert_id else f"group {self.group_key}"


class Matcher(msgspec.Struct, frozen=True):
    """Which alerts a silence covers; an empty part matches all, and not every part may be empty."""

    experiment: str = ""
    candidate: str = ""
    metric: str = ""
    dimension: str = ""
    slice: str = ""
    group_key: str = ""
    alert_id: str = ""

    def covers(self, alert: Alert) -> bool:
        """Whether the alert is one of them."""
        return all(
            wanted in ("", getattr(alert, name)) for name, wanted in msgspec.structs.asdict(self).items()
        )

    def __str__(self) -> str:
        parts = [f"{name} {value}" for name, value in msgspec.structs.asdict(self).items() if value]
        return ", ".join(parts)


class Acknowledgement(msgspec.Struct, frozen=True):
    """That somebody looks after an alert or a group."""

    target: Target
    acted_at: datetime
    acted_by: str
    note: str


class Silence(msgspec.Struct, frozen=True):
    """That alerts are not told until `ends_at`, unless `ended_at` came first."""

    action_id: str
    matcher: Matcher
    acted_at: datetime
    ends_at: datetime
    acted_by: str
    note: str
    ended_at: datetime | None = None

    @property
    def true_end(self) -> datetime:
        """When it ends or ended."""
        return self.ends_at if self.ended_at is None else min(self.ends_at, self.ended_at)

    def holds(self, now: datetime) -> bool:
        """Whether it is in force."""
        return now < self.true_end


class Actions(msgspec.Struct, frozen=True):
    """Everything that people did: acknowledgements oldest first, silences newest first."""

    acknowledgements: tuple[Acknowledgement, ...] = ()
    silences: tuple[Silence, ...] = ()

    def acknowledgement_of(self, alert: Alert) -> Acknowledgement | None:
        """The last acknowledgement of the alert or of its group."""
        found = [
            one
            for one in self.acknowledgements
            if one.target.group_key == alert.group_key and one.target.alert_id in ("", alert.alert_id)
        ]
        return found[-1] if found else None

    def silence_of(self, alert: Alert, now: datetime) -> Silence | None:
        """The silence in force that covers the alert and ends last."""
        found = [one for one in self.silences if one.holds(now) and one.matcher.covers(alert)]
        return max(found, key=lambda one: one.true_end, default=None)

    def silence_ended(self, alert: Alert, now: datetime) -> datetime | None:
        """When the last silence that covered it ended, by `now`; None if none did."""
        ends = [one.true_end for one in self.silences if one.matcher.covers(alert)]
        return max((end for end in ends if end <= now), default=None)

    def was_silenced(self, alert: Alert, raised_at: datetime) -> bool:
        """Whether a silence covered it at any time since it was raised."""
        return any(one.true_end > raised_at and one.matcher.covers(alert) for one in self.silences)


def acknowledge(store: Store, target: Target, *, by: str, note: str = "") -> None:
    """Note that `by` looks after it: no reminders are sent from now on. Raises what the store raises."""
    _insert(
        store,
        {
            "experiment": target.experiment,
            "action": "ack",
            "alert_id": target.alert_id,
            "group_key": target.group_key,
            "acted_by": by,
            "note": _text(note),
        },
    )


def silence(
    store: Store, matcher: Matcher, *, ends_at: datetime, now: datetime, by: str, note: str = ""
) -> str:
    """Tell nobody of these alerts until `ends_at`; return the silence's id.

    Raises SettingsError for an end that is past or too far off, and for a matcher that matches all.
    """
    if matcher == Matcher():
        raise SettingsError("a silence of everything is refused: name an alert, metric, slice or experiment")
    if ends_at <= now:
        raise SettingsError(f"the silence would end in the past: {ends_at:%Y-%m-%d %H:%M:%S} UTC")
    if ends_at - now > LONGEST_SILENCE:
        raise SettingsError(f"a silence lasts {LONGEST_SILENCE.days} days at most")
    action_id = uuid.uuid4().hex[:12]
    row = {
        **msgspec.structs.asdict(matcher),
        "action": "silence",
        "action_id": action_id,
        "ends_at": ends_at,
        "acted_by": by,
        "note": _text(note),
    }
    _insert(store, row)
    return action_id


def unsilence(store: Store, one: Silence, *, by: str, note: str = "") -> None:
    """End a silence now. Raises what the store raises."""
    _insert(
        store,
        {
            "experiment": one.matcher.experiment,
            "action": "unsilence",
            "action_id": one.action_id,
            "acted_by": by,
            "note": _text(note),
        },
    )


def read_actions(store: Store, experiment: str | None = None) -> Actions:
    """Read what was done about the alerts of an experiment, or of all. Raises what the store raises."""
    where = "" if experiment is None else " WHERE experiment IN ('', {experiment:String})"
    rows = store.query(
        "SELECT action, action_id, acted_at, experiment, candidate, metric, dimension, slice, group_key,"
        " alert_id, ends_at, acted_by, note FROM alert_actions FINAL" + where + " ORDER BY acted_at",
        {} if experiment is None else {"experiment": experiment},
    ).rows
    ended = {row[1]: row[2] for row in reversed(rows) if row[0] == "unsilence"}
    return Actions(
        tuple(
            Acknowledgement(Target(row[3], row[8], row[9]), row[2], row[11], row[12])
            for row in rows
            if row[0] == "ack"
        ),
        tuple(
            Silence(row[1], Matcher(*row[3:10]), row[2], row[10], row[11], row[12], ended.get(row[1]))
            for row in reversed(rows)
            if row[0] == "silence"
        ),
    )


def find_target(store: Store, text: str) -> Target:
    """Find the alert or group whose id begins with `text`; `group:` before it means the group.

    A group's key is the id of its first alert: without `group:` the alert is meant where both fit.
    Raises SettingsError if there is none or more than one.
    """
    is_group = text.startswith("group:")
    prefix = _prefix(text)
    column = "group_key" if is_group else "alert_id"
    rows = store.query(
        f"SELECT DISTINCT experiment, group_key{'' if is_group else ', alert_id'} FROM alerts_v1"
        f" WHERE startsWith({column}, {{prefix:String}}) ORDER BY ALL LIMIT 6",
        {"prefix": prefix},
    ).rows
    targets = [Target(*map(str, row)) for row in rows]
    if len(targets) == 1:
        return targets[0]
    what = "group" if is_group else "alert"
    if not targets:
        raise SettingsError(f"no {what} has an id that begins with {prefix!r}: see `gnomon alerts list`")
    raise SettingsError(f"more than one {what} begins with {prefix!r}: {', '.join(map(str, targets[:5]))}")


def find_silences(store: Store, text: str, now: datetime) -> list[Silence]:
    """Find the silences in force whose id, or whose alert's or group's id, begins with `text`.

    Raises SettingsError if there is none, or if `text` is the beginning of several silences' ids.
    """
    prefix = _prefix(text)
    held = [one for one in read_actions(store).silences if one.holds(now)]
    named = [one for one in held if one.action_id.startswith(prefix)]
    if len(named) > 1:
        raise SettingsError(f"more than one silence begins with {prefix!r}")
    of_alert = [
        one
        for one in held
        if any(name and name.startswith(prefix) for name in (one.matcher.alert_id, one.matcher.group_key))
    ]
    if not named and not of_alert:
        raise SettingsError(f"no silence in force has the id {text!r}: see `gnomon alerts list`")
    return named or of_alert


def _prefix(text: str) -> str:
    """The beginning of an id. Raises SettingsError if it is too short to mean one."""
    prefix = text.removeprefix("group:")
    if len(prefix) < _SHORTEST_PREFIX:
        raise SettingsError(f"{text!r} is too short: give {_SHORTEST_PREFIX} characters of the id at least")
    return prefix


def _text(note: str) -> str:
    return " ".join(note.split())[:LONGEST_TEXT]


def _insert(store: Store, row: dict[str, Any]) -> None:
    # The same action again is another one: without a token of its own the store would drop it.
    columns: Sequence[str] = tuple(row)
    store.insert("alert_actions", columns, [tuple(row.values())], dedup_token=uuid.uuid4().hex)
