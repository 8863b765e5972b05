"""What a watched service leaves beside its pairs: alerts, detectors, golden runs, a rollback, dead letters.

For each experiment of the synthetic pairs some 400 detectors with a day of hours, 300 alerts with evidence,
60 runs of a golden set of 200 cases, 100 decisions, 300 dead letters, and a kept verdict; and of the first
experiment 40 pairs that were really compared, with their texts and 200 tokens a side, to be looked at.
"""

from __future__ import annotations

import hashlib
import threading
from datetime import datetime
from typing import Literal

import numpy as np

from bench.synthetic_golden import CANDIDATE, HOUR, MINUTE, fill_golden, fill_rollback
from bench.synthetic_pairs import EXPERIMENTS, LANGUAGES
from bench.synthetic_readable import TOPIC_ID, fill_read_pairs
from compare.alerts.alert import Alert, FamilyCount, PairPosition
from compare.alerts.alert_log import write_alerts
from compare.alerts.drift import HourResult
from compare.alerts.drift_log import write_results
from compare.alerts.evidence import Evidence, NamedTest, SliceTest
from compare.alerts.evidence_store import write_evidence
from compare.alerts.metrics import METRICS, Metric
from compare.alerts.series import SeriesKey
from compare.outcomes import Batch, OtherOutcome
from compare.ship.kept import keep
from compare.ship.model import SCHEMA, Coverage, ShipVerdict, Terms
from compare.store import Store
from compare.writer import Writer
from ingest.records import RawRecord, SourcePosition

HOURS = 24
PAIRS_AN_HOUR = 250_000
SHARES = {"experiment": 1, "route": 12, "tenant": 200, "language": 10, "kind": 3, "served_model": 6}
"""Of a dimension, about how many slices the pairs are in."""
THRESHOLD = 52_000.0
MOST_ALERTS = 300


def fill_watch(store: Store) -> None:
    """Fill all of it, once, as of the newest pair."""
    ((newest,),) = store.query("SELECT max(ingested_at) FROM pairs").rows
    assert isinstance(newest, datetime)
    for number, experiment in enumerate(EXPERIMENTS):
        rng = np.random.default_rng(number)
        fill_detectors(store, experiment, newest, rng)
        fill_alerts(store, experiment, newest, rng)
        fill_golden(store, experiment, newest, rng)
        fill_rollback(store, experiment, newest)
        fill_letters(store, experiment, newest)
        keep(store, verdict(experiment, newest))
    fill_read_pairs(store, EXPERIMENTS[0], newest)


def slices() -> list[tuple[Metric, str, str]]:
    """Metric, dimension and slice of every detector."""
    values = {
        "experiment": ("",),
        "route": tuple(f"route-{n}" for n in range(12)),
        "tenant": tuple(f"tenant-{n}" for n in range(25)),
        "language": LANGUAGES,
        "kind": ("json", "chat", "tools"),
        "served_model": tuple(f"model-{n}" for n in range(6)),
    }
    return [
        (metric, dimension, value)
        for metric in METRICS
        for dimension in metric.dimensions
        for value in values.get(dimension, ())
    ]


def fill_detectors(store: Store, experiment: str, newest: datetime, rng: np.random.Generator) -> None:
    """Every detector as it stands, and its hours of a day."""
    first = newest.replace(minute=0, second=0, microsecond=0) - (HOURS - 1) * HOUR
    rows, results = [], []
    for metric, dimension, value in slices():
        statistic = float(np.exp(rng.normal(1.0, 3.0)))
        status = "pending" if statistic > THRESHOLD / 10 else "running"
        is_rank = metric.kind == "rank"
        rows.append(
            (experiment, CANDIDATE, "series", metric.name, dimension, value, status, 0.02, THRESHOLD)
            + (statistic, 100_000, 1_500, 700, 20_000 * is_rank, "", "", "[]", newest, newest, 1)
            + (metric.kind, int(is_rank), None)
        )
        for hour in range(HOURS):
            results.append(
                HourResult(
                    key=SeriesKey(metric.name, dimension, value),
                    kind=metric.kind,
                    hour_ms=int((first + hour * HOUR).timestamp() * 1000),
                    status="running",
                    pairs=PAIRS_AN_HOUR // SHARES[dimension],
                    observed=0.5 if is_rank else float(rng.beta(2, 100)),
                    baseline=0.5 if is_rank else 0.02,
                    tolerated=0.02,
                    statistic=float(np.exp(rng.normal(1.0, 1.0))),
                    threshold=THRESHOLD,
                    recovery=None,
                    baseline_version=int(is_rank),
                )
            )
    columns = (
        "experiment, candidate, kind, metric, dimension, slice, status, tolerated, threshold, statistic,"
        " pairs_folded, candidate_faults, reference_faults, baseline_pairs, alert_id, state, outbox,"
        " folded_until, updated_at, version, detector, baseline_version, recovery"
    )
    store.insert("detector_state", columns.split(", "), rows)
    for begin in range(0, len(results), 20_000):
        write_results(store, experiment, CANDIDATE, results[begin : begin + 20_000], 1)


def fill_alerts(store: Store, experiment: str, newest: datetime, rng: np.random.Generator) -> None:
    """The last eight fire; each three are a group. Each has evidence, with ten of the worst pairs."""
    rows = store.query(
        "SELECT topic_id, `partition`, `offset`, request_id FROM rollup_worst_v1 WHERE experiment ="
        " {experiment:String} AND is_regression ORDER BY severity DESC LIMIT 600",
        {"experiment": experiment},
    ).rows
    worst = [PairPosition(*row) for row in rows]
    alerts, known = [], [one for one in slices() if one[0].category == "drift"]
    for number in range(MOST_ALERTS):
        metric, dimension, value = known[int(rng.integers(len(known)))]
        fired = newest - (MOST_ALERTS - number) * 30 * MINUTE
        is_firing = number >= MOST_ALERTS - 8
        name = hashlib.sha256(f"{experiment} {number}".encode()).hexdigest()[:32]
        group = hashlib.sha256(f"{experiment} {number // 3 * 3}".encode()).hexdigest()[:32]
        alerts.append(
            Alert(
                alert_id=name,
                version=1 if is_firing else 2,
                state="firing" if is_firing else "resolved",
                severity="critical" if number % 3 == 0 else "warning",
                group_key=group,
                kind=metric.kind,
                experiment=experiment,
                candidate=CANDIDATE,
                metric=metric.name,
                dimension=dimension,
                slice=value,
                started_at=fired - 20 * MINUTE,
                fired_at=fired,
                resolved_at=None if is_firing else fired + 3 * HOUR,
                pairs_folded=60_000,
                pairs_since_start=2_000,
                candidate_faults=90,
                reference_faults=10,
                statistic=60_000.0,
                threshold=THRESHOLD,
                tolerated=0.02,
                observed_rate=0.045,
                observed_low=0.03,
                observed_high=0.06,
                test_name="binomial",
                test_p_value=0.001,
                summary="more than is tolerated",
            )
        )
        places = tuple(worst[(10 * number + step) % len(worst)] for step in range(10))
        write_evidence(store, _evidence(alerts[-1], places))
    write_alerts(store, alerts)


def _evidence(alert: Alert, places: tuple[PairPosition, ...]) -> Evidence:
    return Evidence(
        experiment=alert.experiment,
        candidate=alert.candidate,
        alert_id=alert.alert_id,
        gathered_at=alert.fired_at + MINUTE,
        version=1,
        severity=alert.severity,
        unit="rate",
        pairs_before=40_000,
        pairs_since=2_000,
        value_before=0.015,
        value_since=0.045,
        value_low=0.037,
        value_high=0.055,
        effect=0.03,
        effect_low=0.021,
        effect_high=0.04,
        change_at=alert.started_at,
        change_earliest_at=alert.started_at - 5 * MINUTE,
        change_latest_at=alert.started_at + 5 * MINUTE,
        change_pairs=2_000,
        noise_floor=0.012,
        noise_requests=800,
        detectable=0.01,
        pairs_per_hour=4_000.0,
        families=(FamilyCount("repetition", 60), FamilyCount("json", 30)),
        worst_pairs=places,
        served_changes=(),
        tests=(NamedTest("fisher_exact", 0.03, 0.0002),),
        slices=tuple(
            SliceTest("route", f"route-{n}", 500, 0.02 + n / 300, 0.01 * n + 0.001, 0.05 * n + 0.001)
            for n in range(12)
        ),
        summary="more of the candidate's answers loop since then",
    )


def fill_letters(store: Store, experiment: str, newest: datetime) -> None:
    """300 records of 2 KB that could not be read."""
    others = []
    kind: Literal["dead_letter"] = "dead_letter"
    for number in range(300):
        place = SourcePosition("gnomon.mirror", TOPIC_ID, number % 12, 60_000_000 + number)
        at = newest - number * 4 * MINUTE
        raw = RawRecord(place, int(at.timestamp() * 1000), b"key", b"\xff" * 2_000, (("h", b"v"),))
        reason = ("not_json", "too_large", "comparison_failed")[number % 3]
        others.append(OtherOutcome(place, kind, reason, "why", f"r-{number}", at, at, raw))
    Writer(store, threading.Event()).write(Batch(experiment, (), tuple(others), ()))


def verdict(experiment: str, newest: datetime) -> ShipVerdict:
    """As the watcher keeps one."""
    return ShipVerdict(
        schema=SCHEMA,
        experiment=experiment,
        candidate=CANDIDATE,
        references=("full",),
        decision="hold",
        exit_code=1,
        made_at=newest,
        terms=Terms(margin=0.005),
        pairs=5_000_000,
        repeats=250_000,
        candidate_only=75_000,
        reference_only=35_000,
        excess=0.008,
        low=0.0078,
        high=0.0082,
        first_at=newest - 24 * HOUR,
        last_at=newest,
        need=None,
        reasons=("only the candidate is faulty in 0.80 % more pairs than only the reference",),
        warnings=(),
        slices=(),
        coverage=Coverage(6_000_000, 5_900_000, 0.98, ()),
        supports=(),
        validity=(),
        served=(),
        changed_at=(),
        alerts=(),
        worst=(),
    )


def is_filled(store: Store) -> bool:
    """Whether `fill_watch` was here."""
    return bool(store.query("SELECT count() FROM detector_state").rows[0][0])
