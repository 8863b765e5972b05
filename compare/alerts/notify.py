"""When a group of alerts is told, and what: decided from the group as it stands. Pure but for `notify_due`.

- **fired**: the first member fires that nobody silenced.
- **members**: more alerts joined; told together, `update_interval_s` after the last notice.
- **severity**: the group became critical; at once.
- **unsilenced**: a member that was told fires on, and its last silence ended after the last notice; at once,
  acknowledged or not: who silenced it until a time asked to hear of it then.
- **reminder**: it fires on, nobody acknowledged or silenced all of it, and `renotify_s` have passed.
- **resolved**: no member fires any more. Whoever was told that it fires is told this too, silence or not; a
  group that was never told is told once, as resolved, unless it was silenced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from compare.alerts.alert import Alert, Severity
from compare.alerts.groups import Group, read_groups
from compare.alerts.links import page_link, runbook_link
from compare.alerts.notice import Member, Notice, Reason
from compare.alerts.notice_log import write_notice
from compare.store.client import Store
from ingest.settings_notify import NotifySettings

MOST_MEMBERS = 500


def notify_due(
    store: Store,
    settings: NotifySettings,
    experiment: str,
    now: datetime,
    *,
    alerts: Sequence[Alert] | None = None,
    check: Callable[[], None] = lambda: None,
) -> list[Notice]:
    """Decide and store the notices that are due; return them. Blocks; raises what the store raises.

    `alerts` are those of `read_current` where they are known. `check` is called before each write, and raises
    where another process took over.
    """
    found = []
    for group in read_groups(store, experiment, now, alerts=alerts):
        reason = reason_now(group, settings, now)
        if reason is not None:
            notice = make_notice(group, reason, settings, now)
            check()
            write_notice(store, notice)
            found.append(notice)
    return found


def reason_now(group: Group, settings: NotifySettings, now: datetime) -> Reason | None:
    """Why the group is to be told now; None if it is not."""
    last = group.notices[-1] if group.notices else None
    loud = group.loud(now)
    if last is None or last.state == "resolved":
        if loud:
            return "fired"
        was_missed = last is None and not group.firing
        silenced = all(
            group.actions.was_silenced(alert, group.stored_of(alert).raised_at) for alert in group.alerts
        )
        return "resolved" if was_missed and not silenced else None
    if not group.firing:
        return "resolved"
    told_ids, told_severities = _told(group)
    if "critical" not in told_severities and any(group.severity_of(one) == "critical" for one in loud):
        return "severity"
    since = now - last.created_at
    if since >= timedelta(seconds=settings.update_interval_s) and any(
        one.alert_id not in told_ids for one in loud
    ):
        return "members"
    if any(one.alert_id in told_ids and _came_back(group, one, last, now) for one in loud):
        return "unsilenced"
    is_waiting = any(group.actions.acknowledgement_of(one) is None for one in loud)
    if is_waiting and since >= timedelta(seconds=settings.renotify_s):
        return "reminder"
    return None


def make_notice(group: Group, reason: Reason, settings: NotifySettings, now: datetime) -> Notice:
    """Freeze the group as it stands. Who is silenced is not told of, but is shown where others are."""
    is_over = reason == "resolved"
    lead = group.alerts[0]
    _, told = _told(group)
    severities = {group.severity_of(one) for one in (group.alerts if is_over else group.loud(now))}
    if is_over:
        severities |= told
    ends = [end for one in group.alerts if (end := group.stored_of(one).resolved_at) is not None]
    return Notice(
        group_key=group.key,
        number=group.notices[-1].number + 1 if group.notices else 1,
        reason=reason,
        state="resolved" if is_over else "firing",
        severity="critical" if "critical" in severities else "warning",
        category=lead.category,
        experiment=lead.experiment,
        candidate=lead.candidate,
        started_at=min(one.started_at for one in group.alerts),
        fired_at=min(group.stored_of(one).raised_at for one in group.alerts),
        fired_pair_at=min(one.fired_at for one in group.alerts),
        resolved_at=max(ends) if is_over else None,
        created_at=now.replace(microsecond=now.microsecond // 1000 * 1000),
        members=tuple(_member(group, one, now) for one in group.alerts[:MOST_MEMBERS]),
        evidence=group.evidence.get(lead.alert_id),
        told_severities=tuple(sorted(told)),
        acknowledged=_acknowledged(group),
        link=page_link(settings.explorer_url, lead),
        runbook=runbook_link(settings.runbook_url, lead.category, lead.metric),
    )


def _acknowledged(group: Group) -> str:
    """By whom, and the note, of the first member that fires and is acknowledged."""
    for alert in group.firing:
        found = group.actions.acknowledgement_of(alert)
        if found is not None:
            return f"{found.acted_by}: {found.note}" if found.note else found.acted_by
    return ""


def _came_back(group: Group, alert: Alert, last: Notice, now: datetime) -> bool:
    """Whether the alert's last silence ended after the last notice: nothing told of it since."""
    ended = group.actions.silence_ended(alert, now)
    return ended is not None and ended > last.created_at


def _told(group: Group) -> tuple[set[str], set[Severity]]:
    """Which alerts, and how severe, were told since the group last began to fire."""
    ids: set[str] = set()
    severities: set[Severity] = set()
    for notice in reversed(group.notices):
        if notice.state == "resolved":
            break
        ids |= {member.alert_id for member in notice.members if not member.is_silenced}
        severities.add(notice.severity)
    return ids, severities


def _member(group: Group, alert: Alert, now: datetime) -> Member:
    evidence = group.evidence.get(alert.alert_id)
    summary = alert.summary
    if evidence is not None and evidence.version == alert.version:
        summary = evidence.summary
    return Member(
        alert_id=alert.alert_id,
        version=alert.version,
        state=alert.state,
        severity=group.severity_of(alert),
        kind=alert.kind,
        metric=alert.metric,
        dimension=alert.dimension,
        slice=alert.slice,
        started_at=alert.started_at,
        fired_at=group.stored_of(alert).raised_at,
        fired_pair_at=alert.fired_at,
        resolved_at=group.stored_of(alert).resolved_at,
        statistic=alert.statistic,
        threshold=alert.threshold,
        summary=summary,
        is_silenced=group.actions.silence_of(alert, now) is not None,
        is_acknowledged=group.actions.acknowledgement_of(alert) is not None,
    )
