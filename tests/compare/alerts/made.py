"""Alerts, evidence and notices made by hand, for tests of what comes after a detector."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from compare.alerts.alert import Alert, FamilyCount, PairPosition
from compare.alerts.evidence import Evidence
from compare.alerts.groups import Group
from compare.alerts.notice import Notice, Reason
from compare.alerts.notify import make_notice
from ingest.settings_notify import NotifySettings

NOTIFY = NotifySettings(explorer_url="http://explorer:8501")


def now() -> datetime:
    """The time in whole milliseconds, as the store keeps it."""
    time = datetime.now(UTC)
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def alert(alert_id: str = "a" * 32, at: datetime | None = None, **changes: Any) -> Alert:
    """An alert that fires; `at` is when it fired."""
    fired_at = at or now()
    made = Alert(
        alert_id=alert_id,
        version=1,
        state="firing",
        severity="warning",
        group_key="g" * 32,
        kind="regression_rate",
        experiment="e",
        candidate="q4",
        metric="regression_rate",
        dimension="experiment",
        slice="",
        started_at=fired_at - timedelta(minutes=5),
        fired_at=fired_at,
        pairs_folded=900,
        pairs_since_start=40,
        candidate_faults=12,
        reference_faults=0,
        statistic=5e6,
        threshold=4e6,
        tolerated=0.01,
        observed_rate=0.3,
        observed_low=0.16,
        observed_high=0.46,
        test_name="binomial",
        test_p_value=1e-9,
        summary="e: candidate q4: 12 of 40 pairs regressed",
    )
    return msgspec.structs.replace(made, **changes)


def resolved(one: Alert, at: datetime) -> Alert:
    return msgspec.structs.replace(one, version=one.version + 1, state="resolved", resolved_at=at)


def evidence(of: Alert, **changes: Any) -> Evidence:
    made = Evidence(
        experiment=of.experiment,
        candidate=of.candidate,
        alert_id=of.alert_id,
        gathered_at=of.fired_at,
        version=of.version,
        severity=of.severity,
        unit="rate",
        pairs_before=900,
        pairs_since=40,
        value_before=0.002,
        value_since=0.3,
        value_low=0.16,
        value_high=0.46,
        change_at=of.started_at,
        families=(FamilyCount("repetition", 12),),
        worst_pairs=(PairPosition("t-1", 0, 7, "r-7"),),
        summary=of.summary,
    )
    return msgspec.structs.replace(made, **changes)


def group(*alerts: Alert, notices: tuple[Notice, ...] = (), **changes: Any) -> Group:
    made = Group(alerts[0].group_key, alerts, {one.alert_id: evidence(one) for one in alerts}, notices)
    return msgspec.structs.replace(made, **changes)


def notice(reason: Reason = "fired", at: datetime | None = None, one: Alert | None = None) -> Notice:
    """The notice of a group with one alert."""
    time = at or now()
    lead = one or alert(at=time)
    if reason == "resolved":
        lead = resolved(lead, time)
    return make_notice(group(lead), reason, NOTIFY, time)
