"""The groups of alerts of an experiment as they stand, with what was told of them and done about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from compare.alerts.actions import Actions, read_actions
from compare.alerts.alert import Alert, Severity
from compare.alerts.alert_log import Stored, read_current, read_stored
from compare.alerts.evidence import Evidence
from compare.alerts.evidence_store import read_evidence
from compare.alerts.notice import Notice
from compare.alerts.notice_log import read_notices
from compare.store.client import Store

KEPT = timedelta(days=7)
"""A group that was resolved longer ago is history: nothing is told of it any more."""


class Group(msgspec.Struct, frozen=True):
    """Alerts of one cause, the leading one first; their evidence by id; the notices of it, oldest first.

    `stored` says by id when they were raised and resolved by the clock; an alert that is not there was
    when its pairs were mirrored.
    """

    key: str
    alerts: tuple[Alert, ...]
    evidence: dict[str, Evidence] = {}
    notices: tuple[Notice, ...] = ()
    actions: Actions = Actions()
    stored: dict[str, Stored] = {}

    def stored_of(self, alert: Alert) -> Stored:
        """When the alert was raised and resolved by the clock, UTC."""
        return self.stored.get(alert.alert_id, Stored(alert.fired_at, alert.resolved_at))

    @property
    def firing(self) -> tuple[Alert, ...]:
        """The members that fire."""
        return tuple(alert for alert in self.alerts if alert.state == "firing")

    def loud(self, now: datetime) -> tuple[Alert, ...]:
        """The members that fire and that nobody silenced."""
        return tuple(alert for alert in self.firing if self.actions.silence_of(alert, now) is None)

    def severity_of(self, alert: Alert) -> Severity:
        """The alert's severity by now: its evidence may have made it critical."""
        evidence = self.evidence.get(alert.alert_id)
        is_critical = "critical" in (alert.severity, "" if evidence is None else evidence.severity)
        return "critical" if is_critical else "warning"


def read_groups(
    store: Store, experiment: str, now: datetime, *, alerts: Sequence[Alert] | None = None
) -> list[Group]:
    """Read the groups that fire or were resolved in the last week, oldest first.

    `alerts` are those of `read_current` where they are known. Raises what the store raises.
    """
    if alerts is None:
        alerts = read_current(store, experiment, now - KEPT)
    if not alerts:
        return []
    evidence = read_evidence(store, experiment, [alert.alert_id for alert in alerts])
    by_key: dict[str, list[Alert]] = {}
    for alert in alerts:
        by_key.setdefault(alert.group_key, []).append(alert)
    notices = read_notices(store, experiment, list(by_key))
    actions = read_actions(store, experiment)
    stored = read_stored(store, experiment, [alert.alert_id for alert in alerts])
    groups = []
    for key, members in by_key.items():
        group = Group(
            key,
            tuple(members),
            {one.alert_id: evidence[one.alert_id] for one in members if one.alert_id in evidence},
            tuple(notices.get(key, ())),
            actions,
            {one.alert_id: stored[one.alert_id] for one in members if one.alert_id in stored},
        )
        groups.append(
            msgspec.structs.replace(group, alerts=tuple(sorted(members, key=_leading_first(group))))
        )
    return sorted(groups, key=lambda group: min(group.stored_of(alert).raised_at for alert in group.alerts))


def _leading_first(group: Group) -> Callable[[Alert], tuple[bool, bool, bool, float, str]]:
    """Order: one that fires, critical, of the whole traffic, and then by how much evidence there is."""

    def order(alert: Alert) -> tuple[bool, bool, bool, float, str]:
        return (
            alert.state != "firing",
            group.severity_of(alert) != "critical",
            alert.dimension != "experiment",
            -alert.statistic / alert.threshold,
            alert.alert_id,
        )

    return order
