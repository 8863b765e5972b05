"""What the tests of purge find in the store: pairs, other outcomes, an alert with evidence and a notice."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from compare.alerts.alert import Alert, PairPosition
from compare.alerts.alert_log import write_alerts
from compare.alerts.evidence import Evidence
from compare.alerts.evidence_store import write_evidence
from compare.alerts.groups import Group
from compare.alerts.notice_log import write_notice
from compare.alerts.notify import make_notice
from compare.store import Store
from compare.writer import Writer
from ingest.settings_notify import NotifySettings
from tests.compare import batches
from tests.compare.batches import NOON

OFFSETS = range(6)
"""Positions 0 to 5: requests r-0 to r-5, odd ones of tenant `odd`. 2 is compared twice, on two days."""


def request(offset: int, **changes: Any) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": f"content-of-{offset}-end"}]}
    return batches.mirrored(offset, **{"body": body, "tenant": "odd" if offset % 2 else "even", **changes})


def fill(store: Store) -> None:
    writer = Writer(store, threading.Event())
    for name in ("q4", "q8"):
        pairs = [batches.compared(offset, request=request(offset), candidate_name=name) for offset in OFFSETS]
        writer.write(batches.batch(*pairs))
    later = request(2, ingested_at=NOON + timedelta(days=1))
    writer.write(batches.batch(batches.compared(2, request=later)))
    others = (batches.other(6), batches.other(7, "dead_letter", "invalid_json"), batches.other(8, "failed"))
    ranges = (batches.delivered(0, 9, 9),)
    writer.write(batches.batch(others=others, ranges=ranges))
    write_alerts(store, [alert()])
    examples(store, "r-1", "r-2")


def alert() -> Alert:
    return Alert(
        alert_id="a", version=1, state="firing", severity="warning", group_key="g", experiment="e",
        candidate="q4", metric="regression_rate", dimension="experiment", slice="", started_at=NOON,
        fired_at=NOON, pairs_folded=9, pairs_since_start=9, candidate_faults=2, reference_faults=0,
        statistic=1.0, threshold=1.0, tolerated=0.01, observed_rate=0.2, observed_low=0.1, observed_high=0.3,
        test_name="binomial", test_p_value=0.01, summary="s",
    )  # fmt: skip


def examples(store: Store, *request_ids: str) -> None:
    """Evidence that names these requests, and a notice that was made of it."""
    where = [PairPosition("topic-1", 0, int(one.removeprefix("r-")), one) for one in request_ids]
    evidence = Evidence(
        experiment="e", candidate="q4", alert_id="a", gathered_at=NOON, version=1, severity="warning",
        worst_pairs=tuple(where),
    )  # fmt: skip
    write_evidence(store, evidence)
    group = Group("g", (alert(),), {"a": evidence})
    write_notice(store, make_notice(group, "fired", NotifySettings(), NOON))
