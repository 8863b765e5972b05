"""Recipes about the service: cost, accounting, failures, alerts, deploys, power."""

from __future__ import annotations

import math
import random
import uuid
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
import pytest

from compare.alerts.advance import Rows, advance
from compare.alerts.alert import Alert, FamilyCount
from compare.alerts.alert_log import write_alerts
from compare.alerts.edetector import DetectorSpec, fresh
from compare.alerts.evidence import Evidence
from compare.alerts.evidence_store import write_evidence
from compare.outcomes import DeliveredRange, OtherOutcome
from compare.result import VerdictKind
from ingest.observation import FailureKind, Timings
from ingest.pair import Mode, ReplayPlan
from ingest.records import RawRecord, ServedBy
from tests.compare import batches
from tests.compare.recipes.world import LONG_AGO, NOON, RECENT, World, answered, column, failed


def other(
    world: World, offset: int, kind: str, reason: str, *, raw: RawRecord | None = None, at: datetime = RECENT
) -> OtherOutcome:
    where = batches.position(offset, topic_id=world.experiment)
    return OtherOutcome(where, kind, reason, f"saw {reason}", f"r-{offset}", at, at, raw)  # type: ignore[arg-type]


def test_replay_cost(world: World) -> None:
    def said(prompt: int, completion: int, ms: float) -> object:
        return answered(prompt_tokens=prompt, completion_tokens=completion, timings=Timings(total_ms=ms))

    world.pair(
        reference=said(100, 20, 1500.0),
        candidate=said(90, 30, 500.0),
        reference_again=said(100, 20, 1000.0),
        noise={},
    )
    world.pair(reference=said(200, 10, 500.0), candidate=failed(FailureKind.HTTP_ERROR, 500))
    world.pair(
        at=NOON - timedelta(days=1),
        reference=said(1, 1, 1.0),
        candidate=answered(prompt_tokens=None, timings=None),
    )
    world.flush()
    rows = world.ask("replay_cost", input_price="2", output_price="10")
    day, before = NOON.date(), NOON.date() - timedelta(days=1)
    assert column(rows, "day", "endpoint_name", "role", "calls", "failed_calls", "uncounted") == [
        (before, "full", "reference", 1, 0, 0),
        (before, "q4", "candidate", 1, 0, 1),
        (day, "full", "reference", 2, 0, 0),
        (day, "full", "reference_again", 1, 0, 0),
        (day, "q4", "candidate", 2, 1, 1),
    ]
    assert column(rows, "prompt_tokens_sum", "completion_tokens_sum", "busy_seconds") == [
        (1, 1, 0.001),
        (0, 2, 0.0),
        (300, 30, 2.0),
        (100, 20, 1.0),
        (90, 30, pytest.approx(0.55)),
    ]
    assert rows[2]["cost"] == pytest.approx((300 * 2 + 30 * 10) / 1e6)


def test_not_compared(world: World) -> None:
    for _ in range(5):
        world.pair(at=RECENT)
    world.pair(at=RECENT, offset=4, candidate_name="q8")
    world.flush(
        other(world, 100, "skipped", "sampled_out"),
        other(world, 101, "skipped", "sampled_out"),
        other(world, 102, "failed", "endpoint_away"),
        other(world, 0, "failed", "endpoint_away"),
        other(world, 103, "dead_letter", "invalid_json", at=NOON - timedelta(days=2)),
    )
    rows = world.ask("not_compared")
    assert column(rows, "outcome", "why", "record_count", "share") == [
        ("compared", "", 5, 0.625),
        ("skipped", "sampled_out", 2, 0.25),
        ("failed", "endpoint_away", 1, 0.125),
    ]
    assert rows[1]["an_example"] == "saw sampled_out"
    week = {row["why"]: row["share"] for row in world.ask("not_compared", days="7")}
    assert week["invalid_json"] == pytest.approx(1 / 9)


def test_dead_letters(world: World) -> None:
    where = batches.position(7, topic_id=world.experiment)
    value = b'\xff{"a": "' + "é".encode() * 40
    raw = RawRecord(where, 1, b"key", value, (("h", b"\xfe"),))
    empty = RawRecord(where, 1, None, None, ())
    world.flush(
        other(world, 7, "dead_letter", "invalid_json", raw=raw),
        other(world, 8, "dead_letter", "missing_field", raw=empty, at=RECENT - timedelta(hours=1)),
    )
    first, second = world.ask("dead_letters", bytes="12")
    assert (first["offset"], first["source"], first["why"]) == (7, "record", "invalid_json")
    assert (first["value_bytes"], first["starts_with_hex"]) == (len(value), value[:16].hex())
    assert first["starts_with"] == '\ufffd{"a": "éé'
    assert first["header_names"] == ["h"]
    assert (second["value_bytes"], second["starts_with"]) == (None, "")
    assert column(world.ask("dead_letters", reason="missing_field"), "offset") == [8]
    assert column(world.ask("dead_letters", limit="1"), "offset") == [7]


def test_accounting_by_hour(world: World) -> None:
    hour = RECENT.replace(minute=0, second=0)
    earlier = hour - timedelta(hours=2) + timedelta(minutes=30)
    for lag in (1, 2, 9):
        world.pair(at=earlier, request={"mirrored_at": earlier - timedelta(seconds=lag)})
    world.pair(at=hour, request={"mirrored_at": hour - timedelta(seconds=4)})
    world.flush(
        other(world, 10, "skipped", "shed", at=hour),
        other(world, 11, "failed", "budget", at=hour),
        other(world, 12, "dead_letter", "invalid_json", at=hour),
        ranges=(DeliveredRange("group", "gnomon.mirror", world.experiment, 0, 0, 13, 7),),
    )
    rows = world.ask("accounting_by_hour")
    names = ("compared", "skipped", "failed", "dead_lettered", "lag_p50_s", "lag_max_s")
    found = {row["hour"]: tuple(row[name] for name in names) for row in rows}
    assert found[earlier.replace(minute=0)] == (3, 0, 0, 0, 2.0, 9.0)
    assert found[hour] == (1, 1, 1, 1, 4.0, 4.0)
    assert sum(column(rows, "delivered")) == 7


def test_endpoint_failures(world: World) -> None:
    broken = failed(FailureKind.HTTP_ERROR, 500, "out of memory")
    for minutes in (3, 2):
        world.pair(at=RECENT - timedelta(minutes=minutes), candidate=broken)
    world.pair(at=RECENT, candidate=failed(FailureKind.IDLE_TIMEOUT))
    world.pair(at=RECENT)
    world.pair(at=RECENT - timedelta(days=2), candidate=broken)
    world.flush()
    rows = world.ask("endpoint_failures")
    assert column(rows, "endpoint_name", "role", "failure", "http_status", "failures", "share") == [
        ("q4", "candidate", "http_error", 500, 2, 0.5),
        ("q4", "candidate", "idle_timeout", None, 1, 0.25),
    ]
    assert (rows[0]["first_at"], rows[0]["last_at"]) == tuple(RECENT - timedelta(minutes=m) for m in (3, 2))
    assert (rows[0]["last_message"], rows[0]["last_request_id"]) == ("out of memory", "r-1")


def alert(world: World, number: int, fired_at: datetime, resolved_at: datetime | None) -> Alert:
    return Alert(
        alert_id=f"{world.experiment}-{number}",
        version=2 if resolved_at else 1,
        state="resolved" if resolved_at else "firing",
        severity="critical",
        group_key="g",
        experiment=world.experiment,
        candidate="q4",
        metric="regression_rate",
        dimension="route",
        slice="a",
        started_at=fired_at - timedelta(minutes=45),
        fired_at=fired_at,
        resolved_at=resolved_at,
        pairs_folded=500,
        pairs_since_start=40,
        candidate_faults=12,
        reference_faults=0,
        statistic=4000.0,
        threshold=4000.0,
        tolerated=0.01,
        observed_rate=0.3,
        observed_low=0.16,
        observed_high=0.46,
        test_name="binomial",
        test_p_value=1e-9,
        summary="a line",
    )


def test_alert_history(world: World) -> None:
    done = alert(world, 1, NOON, NOON + timedelta(hours=3))
    opened = msgspec.structs.replace(done, version=1, state="firing", resolved_at=None)
    open_now = alert(world, 2, datetime.now(UTC) - timedelta(hours=2), None)
    old = alert(world, 3, NOON - timedelta(days=60), NOON - timedelta(days=59))
    write_alerts(world.store, [opened, done, open_now, old])
    write_evidence(
        world.store,
        Evidence(
            experiment=world.experiment,
            candidate="q4",
            alert_id=open_now.alert_id,
            gathered_at=NOON,
            version=1,
            severity="critical",
            families=(FamilyCount("repetition", 9),),
        ),
    )
    rows = world.ask("alert_history")
    assert column(rows, "now_is", "slice", "candidate_faults") == [("firing", "a", 12), ("resolved", "a", 12)]
    assert rows[0]["hours_open"] == pytest.approx(2, abs=0.05)
    assert rows[1]["hours_open"] == 3.0
    assert column(rows, "hours_to_fire") == [0.75, 0.75]
    assert rows[0]["families"] == [{"family": "repetition", "pairs": 9}]
    assert column(world.ask("alert_history", state="resolved"), "fired_at") == [NOON]


def test_diverged_with_deploy(world: World) -> None:
    deploy = NOON

    def seen(name: str, hours: int, verdict: VerdictKind) -> int:
        return world.pair(
            at=deploy + timedelta(hours=hours), verdict=verdict, request={"request_hash": name * 32}
        )

    match, equivalent, diverged = VerdictKind.MATCH, VerdictKind.EQUIVALENT, VerdictKind.DIVERGED
    seen("a", -2, match)
    seen("a", -1, equivalent)
    seen("a", 1, match)
    first = seen("a", 2, diverged)
    seen("a", 3, VerdictKind.CANDIDATE_WORSE)
    seen("b", -1, diverged)
    seen("b", 1, diverged)
    seen("c", -1, match)
    seen("c", 1, match)
    seen("d", 1, diverged)
    seen("e", -1, VerdictKind.REFERENCE_ERROR)
    seen("e", 1, diverged)
    # The deploy's own moment is after it.
    seen("f", -1, match)
    seen("f", 0, VerdictKind.CANDIDATE_ERROR)
    world.flush()
    rows = world.ask("diverged_with_deploy", deployed_at=f"{deploy:%Y-%m-%d %H:%M:%S}")
    assert column(rows, "request_hash", "pairs_before", "pairs_after", "differing_after") == [
        ("f" * 32, 1, 1, 1),
        ("a" * 32, 2, 3, 2),
    ]
    assert rows[1]["first_difference_at"] == deploy + timedelta(hours=2)
    assert rows[1]["first_request_id"] == f"r-{first}"
    assert rows[1]["verdicts_after"] == ["candidate_worse", "diverged"]
    later = f"{deploy + timedelta(hours=2, minutes=30):%Y-%m-%d %H:%M:%S}"
    assert world.ask("diverged_with_deploy", deployed_at=later) == []


def test_served_before_after(world: World) -> None:
    def served(weights: str, at: datetime) -> None:
        by = ServedBy(model="m", engine="vllm", quantization="awq-int4", weights_sha256=weights)
        world.pair(at=at, request={"served_by": by, "route": world.experiment})

    served("old", NOON - timedelta(hours=2))
    served("old", NOON - timedelta(hours=1))
    served("old", NOON + timedelta(minutes=1))
    served("new", NOON)
    served("new", NOON + timedelta(hours=1))
    served("older", LONG_AGO)
    world.flush()
    rows = world.ask("served_before_after", at=f"{NOON:%Y-%m-%d %H:%M:%S}", route=world.experiment)
    assert column(rows, "served_weights_sha256", "requests_before", "requests_after") == [
        ("old", 2, 1),
        ("new", 0, 2),
    ]
    assert rows[1]["first_at"] == NOON
    assert (rows[1]["served_engine"], rows[1]["served_quantization"]) == ("vllm", "awq-int4")


def test_experiment_versions(world: World) -> None:
    for digest, hours in (("aa", 5), ("bb", 1)):
        settings = msgspec.json.encode({"endpoints": {"q4": {}, "full": {}}, "compare": {}}).decode()
        row = (world.experiment, digest, settings, "{}", NOON - timedelta(hours=hours), hours)
        columns = ("experiment", "settings_hash", "settings", "served", "ingested_at", "version")
        world.store.insert("experiments", columns, [row])
    rows = world.ask("experiment_versions")
    assert column(rows, "settings_hash", "endpoints") == [("bb", ["full", "q4"]), ("aa", ["full", "q4"])]
    assert rows[0]["last_at"] == NOON - timedelta(hours=1)


def test_repeated_prompts(world: World) -> None:
    def seen(name: str, minute: int, verdict: VerdictKind, mode: Mode = Mode.GREEDY) -> int:
        return world.pair(
            at=NOON + timedelta(minutes=minute),
            verdict=verdict,
            request={"request_hash": name * 32},
            plan=ReplayPlan(mode, False, False, False),
        )

    seen("a", 0, VerdictKind.MATCH)
    seen("a", 1, VerdictKind.MATCH)
    last = seen("a", 2, VerdictKind.CANDIDATE_WORSE, Mode.AS_SENT)
    for minute in range(3):
        seen("b", minute, VerdictKind.MATCH)
    for minute, verdict in enumerate((VerdictKind.MATCH, VerdictKind.DIVERGED)):
        seen("c", minute, verdict)
    world.flush()
    rows = world.ask("repeated_prompts")
    assert column(rows, "request_hash", "pairs", "distinct_verdicts", "regressions") == [
        ("a" * 32, 3, 2, 1),
        ("c" * 32, 2, 2, 0),
    ]
    assert rows[0]["verdict_pairs"] == {"match": 2, "candidate_worse": 1}
    assert rows[0]["modes"] == ["as_sent", "greedy"]
    assert rows[0]["last_request_id"] == f"r-{last}"


def growth(p: float, p0: float) -> float:
    """Mean logarithm of the best bet's factor at rate p, from the definition of e in the design."""
    best = -math.inf
    for multiple in (3, 10, 30, 100):
        b = min(multiple * p0, 0.5)
        best = max(best, p * math.log(b / p0) + (1 - p) * math.log((1 - b) / (1 - p0)))
    return best


def test_detection_power(world: World) -> None:
    p0, threshold = 0.01, 40_000.0
    now = datetime.now(UTC)
    state = {
        "experiment": world.experiment,
        "candidate": "q4",
        "kind": "series",
        "metric": "regression_rate",
        "dimension": "experiment",
        "slice": "",
        "status": "running",
        "tolerated": p0,
        "threshold": threshold,
        "statistic": 1.0,
        "state": "",
        "outbox": "",
        "folded_until": now,
        "updated_at": now,
        "version": 1,
    }
    route, quiet = (
        {**state, "dimension": "route", "slice": "a"},
        {**state, "dimension": "route", "slice": "z"},
    )
    waiting = {**state, "dimension": "route", "slice": "w", "tolerated": None, "threshold": None}
    series = [state, route, quiet, waiting, {**state, "metric": "candidate_only_excess", "tolerated": 0.0}]
    world.store.insert("detector_state", list(state), [list(row.values()) for row in series])
    hour = (now - timedelta(hours=3)).replace(minute=10, second=0, microsecond=0)
    for number in range(120):
        world.pair(at=hour, request={"route": "a" if number < 24 else "b"})
    # The same request again within the hour counts once; an hour later it counts again.
    for minutes in (20, 60):
        at = hour + timedelta(minutes=minutes)
        world.pair(at=at, request={"route": "b", "request_hash": f"{119:032x}"})
    world.pair(at=hour, tags=("history_faulty",))
    world.flush()
    rows = world.ask("detection_power", traffic_hours="11", hours="20")
    assert column(rows, "dimension", "slice", "tolerated_rate") == [
        ("experiment", "", p0),
        ("route", "a", p0),
        ("route", "z", p0),
    ]
    assert column(rows, "pairs_per_hour") == [121.0, 24.0, 0.0]
    for row, pairs in ((rows[0], 20 * 121), (rows[1], 20 * 24)):
        steps = [p0 * (1 / p0) ** (number / 200) for number in range(1, 201)]
        enough = [p for p in steps if growth(p, p0) * pairs >= math.log(4 * threshold)]
        assert row["detectable_rate"] == pytest.approx(enough[0])
        assert row["times_tolerated"] == pytest.approx(enough[0] / p0)
    assert (rows[2]["detectable_rate"], rows[2]["hours_to_see_tenfold"]) == (None, None)
    needed = rows[0]["pairs_to_see_tenfold"]
    # At a bet itself the growth is KL(p1 || p0).
    divergence = 0.1 * math.log(0.1 / p0) + 0.9 * math.log(0.9 / (1 - p0))
    assert needed == pytest.approx(math.log(4 * threshold) / divergence)
    assert rows[0]["hours_to_see_tenfold"] == pytest.approx(needed / 121)
    assert mean_delay(DetectorSpec("regression_rate", p0, threshold), 10 * p0) == pytest.approx(
        needed, rel=0.2
    )


def mean_delay(spec: DetectorSpec, rate: float) -> float:
    """Mean over 100 runs of how many pairs the real detector needs at this rate."""
    chance = random.Random(uuid.UUID(int=7).int)
    delays = []
    for _ in range(100):
        faults = np.asarray([chance.random() < rate for _ in range(20_000)], dtype=np.int64)
        rows = Rows(faults.astype(np.float64), faults, np.zeros_like(faults), np.arange(faults.size))
        _, turns = advance(spec, fresh(spec), rows)
        delays.append(turns[0].row + 1)
    return sum(delays) / len(delays)
