"""A store with alerts, detectors and their pairs, all written down by hand, so that tests can count."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from compare.alerts.alert import Alert, FamilyCount, PairPosition
from compare.alerts.alert_log import write_alerts
from compare.alerts.drift import HourResult
from compare.alerts.drift_log import write_results
from compare.alerts.evidence import Evidence, NamedTest, ServedChange, SliceTest
from compare.alerts.evidence_store import write_evidence
from compare.alerts.series import SeriesKey
from compare.store.client import Store, open_store
from tests.compare.alerts.conftest import Writer
from tests.fixtures.stores import MigratedAt

EXPERIMENT, CANDIDATE = "drifting", "q4"
FIRST, IN_SLICE, OVER = "a1" * 16, "a2" * 16, "a3" * 16
"""The alerts: of the whole experiment, of a slice in the same group, and one that is resolved."""
HOSTILE_ROUTE = "**bold** [x](javascript:alert(1)) <script>alert(1)</script> \u202eabc"
# Recent, since tables drop old days; made once, when a test asks for it.
HOUR = timedelta(hours=1)
THRESHOLD = 52_000.0


def began() -> datetime:
    """The hour of the calm pairs; those of the next hour have drifted."""
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - 20 * HOUR


def fill(folder: Path, migrated_at: MigratedAt) -> datetime:
    """Put all of it into the folder; return the hour of the calm pairs."""
    start = began()
    with open_store(migrated_at(folder), role="owner") as store:
        _pairs(store, start)
        _noise(store, start)
        _alerts(store, start)
        _detectors(store, start)
    return start


def _pairs(store: Store, start: datetime) -> None:
    """40 calm pairs of a forced KL of 0.01 to 0.1 nats, a minute apart, then 40 of 0.1 to 1.0.

    Routes take turns; of the latter every fourth, all of route `extract`, has a fault on the candidate. In
    the second calm one only the reference is faulty.
    """
    writer = Writer(store)
    writer.experiment = EXPERIMENT
    for offset in range(80):
        has_drifted = offset >= 40
        at = start + (HOUR if has_drifted else timedelta()) + timedelta(minutes=offset % 40)
        worse = "candidate" if has_drifted and offset % 4 == 0 else "reference" if offset == 1 else ""
        writer.pair(
            offset,
            worse=worse,
            route="chat" if offset % 2 else "extract",
            kl=(0.1 if has_drifted else 0.01) * (offset % 10 + 1),
            mirrored_at=at,
            ingested_at=at,
            severity=0.9 if worse == "candidate" else 0.1,
            divergence_position=7,
        )
    writer.flush()


def _noise(store: Store, start: datetime) -> None:
    """The reference was asked twice for the first four: 0.005 nats from itself each time."""
    rows = [
        {
            "experiment": EXPERIMENT,
            "candidate": CANDIDATE,
            "side": "reference",
            "topic_id": "t-1",
            "partition": 0,
            "offset": offset,
            "attempt_id": uuid.uuid4(),
            "request_hash": f"hash-0-{offset}",
            "mirrored_at": start + timedelta(minutes=offset),
            "ingested_at": start + timedelta(minutes=offset),
            "kl_forced_mean_nats": 0.005,
            "version": 1,
        }
        for offset in range(4)
    ]
    _put(store, "noise_pairs", rows)


def alert(alert_id: str, start: datetime, **changed: Any) -> Alert:
    """A firing alert of the regression rate in the whole experiment."""
    values: dict[str, Any] = {
        "alert_id": alert_id,
        "version": 1,
        "state": "firing",
        "severity": "critical",
        "group_key": FIRST,
        "kind": "regression_rate",
        "experiment": EXPERIMENT,
        "candidate": CANDIDATE,
        "metric": "regression_rate",
        "dimension": "experiment",
        "slice": "",
        "started_at": start + HOUR,
        "fired_at": start + HOUR + timedelta(minutes=20),
        "pairs_folded": 60,
        "pairs_since_start": 20,
        "candidate_faults": 5,
        "reference_faults": 0,
        "statistic": 60_000.0,
        "threshold": THRESHOLD,
        "tolerated": 0.02,
        "observed_rate": 0.25,
        "observed_low": 0.1,
        "observed_high": 0.5,
        "test_name": "binomial",
        "test_p_value": 0.001,
        "summary": "a summary",
    }
    return Alert(**{**values, **changed})


def _alerts(store: Store, start: datetime) -> None:
    write_alerts(
        store,
        [
            alert(FIRST, start),
            alert(IN_SLICE, start, dimension="route", slice=HOSTILE_ROUTE, severity="warning"),
            alert(
                OVER,
                start,
                state="resolved",
                group_key=OVER,
                metric="kl_forced",
                kind="rank",
                started_at=start - 3 * HOUR,
                fired_at=start - 2 * HOUR,
                resolved_at=start - HOUR,
            ),
        ],
    )
    change = start + HOUR
    write_evidence(
        store,
        Evidence(
            experiment=EXPERIMENT,
            candidate=CANDIDATE,
            alert_id=FIRST,
            gathered_at=start + 2 * HOUR,
            version=1,
            severity="critical",
            unit="rate",
            pairs_before=40,
            pairs_since=40,
            value_before=0.0,
            value_since=0.25,
            value_low=0.1269,
            value_high=0.4120,
            effect=0.25,
            effect_low=0.1200,
            effect_high=0.4019,
            change_at=change,
            change_earliest_at=change - timedelta(minutes=21),
            change_latest_at=change,
            change_pairs=2,
            noise_floor=0.0125,
            noise_requests=80,
            detectable=0.125,
            pairs_per_hour=3.5,
            families=(FamilyCount("repetition", 10),),
            worst_pairs=(PairPosition("t-1", 0, 44, "r-0-44"), PairPosition("t-1", 0, 40, "r-0-40")),
            served_changes=(
                ServedChange(
                    "candidate", CANDIDATE, change, "quantization q8_0", f"quantization {HOSTILE_ROUTE}"
                ),
            ),
            tests=(NamedTest("fisher_exact", 0.25, 0.0011),),
            slices=(SliceTest("route", "extract", 20, 0.5, 0.0003, 0.0006),),
            summary="evidence's summary",
        ),
    )


def _detectors(store: Store, start: datetime) -> None:
    common = {
        "experiment": EXPERIMENT,
        "candidate": CANDIDATE,
        "kind": "series",
        "folded_until": start + 2 * HOUR,
        "updated_at": start + 2 * HOUR,
        "version": 1,
        "outbox": "[]",
    }

    def one(metric: str, detector: str, status: str, statistic: float | None, **more: Any) -> dict[str, Any]:
        limits = {"tolerated": 0.02, "threshold": THRESHOLD} if statistic is not None else {}
        told = {"metric": metric, "detector": detector, "status": status, "statistic": statistic}
        return {**common, **told, **limits, "dimension": "experiment", **more}

    excess = ("candidate_only_excess", "candidate_only_excess", "running")
    rows = [
        one(*excess, 52.0, pairs_folded=80, candidate_faults=10, reference_faults=1),
        one(
            *excess,
            9.0,
            dimension="route",
            slice="extract",
            pairs_folded=40,
            candidate_faults=10,
            reference_faults=0,
        ),
        one(
            *excess,
            0.9,
            dimension="route",
            slice="chat",
            pairs_folded=40,
            candidate_faults=0,
            reference_faults=1,
        ),
        one(
            "regression_rate",
            "regression_rate",
            "firing",
            1.0,
            recovery=10.0,
            pairs_folded=80,
            candidate_faults=10,
            alert_id=FIRST,
        ),
        one("kl_forced", "rank", "pending", 5_200.0, pairs_folded=80, baseline_pairs=40, baseline_version=1),
        one("cosine_similarity", "bounded_mean", "needs_baseline", None, baseline_pairs=12),
        one("unscored_rate", "accounting_rate", "running", 1.0, pairs_folded=200),
        {**common, "kind": "refused", "dimension": "tenant", "status": "slices_refused", "pairs_folded": 7},
    ]
    for row in rows:
        _put(store, "detector_state", [row])
    _put(
        store,
        "alert_baselines",
        [
            {
                "experiment": EXPERIMENT,
                "candidate": CANDIDATE,
                "metric": "kl_forced",
                "version": 1,
                "chosen_by": "learned",
                "is_open": False,
                "from_at": start,
                "to_at": start + HOUR,
                "pairs": 40,
                "mean": 0.055,
                "recorded_at": start + HOUR,
            }
        ],
    )
    hours = [
        _hour("regression_rate", "regression_rate", start, 0, 40, 0.0),
        _hour("regression_rate", "regression_rate", start, 1, 40, 0.25),
        _hour("candidate_only_excess", "candidate_only_excess", start, 0, 40, -0.025),
        _hour("candidate_only_excess", "candidate_only_excess", start, 1, 40, 0.25),
        _hour("kl_forced", "rank", start, 0, 40, 0.5),
        _hour("kl_forced", "rank", start, 1, 40, 0.95),
        _hour("unscored_rate", "accounting_rate", start, 0, 100, 0.01),
        _hour("unscored_rate", "accounting_rate", start, 1, 100, 0.05),
    ]
    write_results(store, EXPERIMENT, CANDIDATE, hours, 1)


def _hour(metric: str, kind: Any, start: datetime, number: int, pairs: int, observed: float) -> HourResult:
    return HourResult(
        key=SeriesKey(metric, "experiment", ""),
        kind=kind,
        hour_ms=int((start + number * HOUR).timestamp() * 1000),
        status="running",
        pairs=pairs,
        observed=observed,
        baseline=0.5 if kind == "rank" else 0.02,
        tolerated=0.02,
        statistic=1.0 + number,
        threshold=THRESHOLD,
        recovery=None,
        baseline_version=1 if kind == "rank" else 0,
    )


def _put(store: Store, table: str, rows: list[dict[str, Any]]) -> None:
    store.insert(table, list(rows[0]), [tuple(row.values()) for row in rows])
