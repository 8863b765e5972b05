"""A made-up alert, to try sinks with: like a real one, and told as a test in every text."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

import msgspec

from compare.alerts.alert import FamilyCount, PairPosition
from compare.alerts.evidence import Evidence, NamedTest, ServedChange
from compare.alerts.links import page_link, runbook_link
from compare.alerts.notice import Member, Notice
from ingest.settings import Settings


def sample_notices(settings: Settings, now: datetime) -> tuple[Notice, Notice]:
    """One alert, firing and then resolved, of the settings' experiment and first candidate."""
    experiment, candidate = settings.experiment.name, settings.experiment.candidates[0]
    alert_id = f"test-{uuid.uuid4().hex[:27]}"
    began = now - timedelta(minutes=10)
    evidence = Evidence(
        experiment=experiment,
        candidate=candidate,
        alert_id=alert_id,
        gathered_at=now,
        version=1,
        severity="warning",
        unit="rate",
        pairs_before=2_000,
        pairs_since=400,
        value_before=0.004,
        value_since=0.03,
        value_low=0.0156,
        value_high=0.0518,
        effect=0.026,
        effect_low=0.0125,
        effect_high=0.0477,
        change_at=began,
        change_earliest_at=began - timedelta(minutes=1),
        change_latest_at=began + timedelta(minutes=1),
        change_pairs=80,
        noise_floor=0.002,
        noise_requests=2_400,
        detectable=0.012,
        pairs_per_hour=2_400.0,
        families=(FamilyCount("repetition", 12),),
        worst_pairs=(PairPosition("00000000-0000-0000-0000-000000000000", 0, 1, "test-request"),),
        served_changes=(
            ServedChange("candidate", candidate, began, "quantization q8_0", "quantization q4_0"),
        ),
        tests=(NamedTest("fisher_exact", 0.026, 1.1e-5),),
        summary=f"{experiment}: candidate {candidate}: this is a test of the sinks, nothing is wrong",
    )
    member = Member(
        alert_id=alert_id,
        version=1,
        state="firing",
        severity="warning",
        kind="regression_rate",
        metric="regression_rate",
        dimension="experiment",
        slice="",
        started_at=began,
        fired_at=now,
        resolved_at=None,
        statistic=1.0,
        threshold=1.0,
        summary=evidence.summary,
    )
    firing = Notice(
        group_key=alert_id,
        number=1,
        reason="test",
        state="firing",
        severity="warning",
        category="drift",
        experiment=experiment,
        candidate=candidate,
        started_at=began,
        fired_at=now,
        resolved_at=None,
        created_at=now,
        members=(member,),
        evidence=evidence,
    )
    firing = msgspec.structs.replace(
        firing,
        link=page_link(settings.notify.explorer_url, firing),
        runbook=runbook_link(settings.notify.runbook_url, "drift", member.metric),
    )
    over = msgspec.structs.replace(member, version=2, state="resolved", resolved_at=now)
    resolved = msgspec.structs.replace(
        firing, number=2, state="resolved", resolved_at=now, members=(over,), told_severities=("warning",)
    )
    return firing, resolved
