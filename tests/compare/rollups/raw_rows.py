"""Rows for the raw tables, and the rollups counted from `pairs_v1` in plain Python."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from compare.store import Store

# Days not long ago, since the tables drop rows that are older than their TTL; noon, so that hours are full.
TODAY = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
YESTERDAY = TODAY - timedelta(days=1)

VERDICTS = {
    "match": (False, [], []),
    "diverged": (False, [], []),
    "candidate_worse": (True, ["json", "repetition"], []),
    "reference_worse": (False, [], ["json"]),
    "both_faulty": (False, ["utf8"], ["utf8"]),
    "unscored": (False, [], []),
}
DIMENSIONS = ("route", "tenant", "language", "kind", "prompt_length", "served_model", "verdict")
FAMILIES = {
    "candidate_family": "candidate_fault_families",
    "reference_family": "reference_fault_families",
    "candidate_only_family": "candidate_only_families",
    "reference_only_family": "reference_only_families",
}
SUMMED = (
    "kl_forced_mean_nats",
    "cosine_similarity",
    "edit_similarity",
    "severity",
    "latency_ratio",
    "reference_total_ms",
    "candidate_total_ms",
    "top1_agreement_forced_ratio",
    "field_agreement",
    "reference_tokens",
    "candidate_tokens",
    "prompt_tokens",
)
DIGESTED = SUMMED[:7]


def pair(offset: int, at: datetime, **changes: Any) -> dict[str, Any]:
    """One row of `pairs`; what varies is drawn by its offset, so that the same offset is the same pair."""
    draw = random.Random(offset)
    verdict = draw.choice(list(VERDICTS))
    is_regression, candidate_faults, reference_faults = VERDICTS[verdict]

    def maybe(value: float) -> float | None:
        return None if draw.random() < 0.3 else value

    row = {
        "experiment": "nightly",
        "candidate": draw.choice(["q4", "q8"]),
        "topic": "gnomon.mirror",
        "topic_id": "topic-1",
        "partition": offset % 2,
        "offset": offset,
        "mirrored_at": at - timedelta(seconds=draw.choice([0.2, 40, 5400])),
        "ingested_at": at,
        "route": draw.choice(["extract", "chat", ""]),
        "tenant": draw.choice(["o'neil", "b", "c"]),
        "language": draw.choice(["en", "zh"]),
        "kind": draw.choice(["chat", "tools"]),
        "served_model": draw.choice(["m", "n"]),
        "mode": draw.choice(["greedy", "greedy", "as_sent", "mirrored"]),
        "tags": ["history_faulty"] if draw.random() < 0.2 else [],
        "verdict": verdict,
        "is_regression": is_regression,
        "is_candidate_only_fault": bool(candidate_faults) and not reference_faults,
        "is_reference_only_fault": bool(reference_faults) and not candidate_faults,
        "candidate_fault_families": candidate_faults,
        "reference_fault_families": reference_faults,
        "candidate_only_families": [name for name in candidate_faults if name not in reference_faults],
        "reference_only_families": [name for name in reference_faults if name not in candidate_faults],
        "exact_match": maybe(float(verdict == "match")),
        "reference_is_schema_valid": maybe(float(draw.random() < 0.8)),
        "candidate_is_schema_valid": maybe(float(draw.random() < 0.5)),
        "is_structure_enforced": draw.choice([True, False, None]),
        "kl_forced_mean_nats": maybe(draw.lognormvariate(-4, 2)),
        "cosine_similarity": maybe(draw.random()),
        "edit_similarity": draw.random(),
        "severity": maybe(draw.random()),
        "latency_ratio": maybe(draw.lognormvariate(0, 1)),
        "reference_total_ms": draw.lognormvariate(6, 1),
        "candidate_total_ms": maybe(draw.lognormvariate(6, 1)),
        "top1_agreement_forced_ratio": maybe(draw.random()),
        "field_agreement": maybe(draw.random()),
        "reference_tokens": draw.randrange(500),
        "candidate_tokens": draw.randrange(500),
        "prompt_tokens": None if draw.random() < 0.2 else draw.randrange(10_000),
        **changes,
    }
    return {"version": int(row["ingested_at"].timestamp() * 1_000_000), **row}


def outcome(offset: int, at: datetime, kind: str = "skipped", reason: str = "sampled_out") -> dict[str, Any]:
    """One row of `outcomes`."""
    return {
        "experiment": "nightly",
        "topic": "gnomon.mirror",
        "topic_id": "topic-1",
        "partition": offset % 2,
        "offset": offset,
        "kind": kind,
        "reason": reason,
        "mirrored_at": at - timedelta(seconds=offset % 7),
        "ingested_at": at,
        "version": int(at.timestamp() * 1_000_000),
    }


def put(store: Store, table: str, rows: Iterable[dict[str, Any]]) -> None:
    listed = list(rows)
    store.insert(table, list(listed[0]), [list(row.values()) for row in listed])


def counted(row: dict[str, Any]) -> bool:
    return row["verdict"] != "unscored" and row["mode"] != "mirrored" and "history_faulty" not in row["tags"]


def expected_hours(store: Store) -> dict[tuple[Any, ...], dict[str, Any]]:
    """(hour, experiment, candidate, dimension, value) to counts, sums and sorted values."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in store.query("SELECT * FROM pairs_v1").dicts():
        hour = row["mirrored_at"].replace(minute=0, second=0, microsecond=0)
        slices = [("all", ""), *((name, row[name]) for name in DIMENSIONS)]
        slices += [(name, family) for name, column in FAMILIES.items() for family in row[column]]
        for dimension, value in slices:
            groups[hour, row["experiment"], row["candidate"], dimension, value].append(row)
    return {key: summary(rows) for key, rows in groups.items()}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    verdicts = Counter(row["verdict"] for row in rows)
    valid = [
        row
        for row in rows
        if row["reference_is_schema_valid"] == 1 and row["candidate_is_schema_valid"] is not None
    ]
    lost = [row for row in valid if row["candidate_is_schema_valid"] == 0]
    fair = [row for row in rows if counted(row)]
    made: dict[str, Any] = {
        "pairs": len(rows),
        "counted_pairs": len(fair),
        **{f"{name}_pairs": verdicts[name] for name in VERDICTS},
        "exact_pairs": sum(row["exact_match"] == 1 for row in rows),
        "schema_pairs": len(valid),
        "schema_regressions": len(lost),
        "enforced_schema_pairs": sum(row["is_structure_enforced"] is True for row in valid),
        "enforced_schema_regressions": sum(row["is_structure_enforced"] is True for row in lost),
    }
    for prefix, some in (("", rows), ("counted_", fair)):
        made[f"{prefix}regressions"] = sum(row["is_regression"] for row in some)
        made[f"{prefix}candidate_only_faults"] = sum(row["is_candidate_only_fault"] for row in some)
        made[f"{prefix}reference_only_faults"] = sum(row["is_reference_only_fault"] for row in some)
    for name in SUMMED:
        values = sorted(row[name] for row in rows if row[name] is not None)
        made[f"{name}_pairs"] = len(values)
        made[f"{name}_mean"] = math.fsum(values) / len(values) if values else None
        if name in DIGESTED:
            made[name] = values
    return made


def expected_minutes(store: Store) -> dict[tuple[Any, ...], tuple[int, float, int]]:
    """(minute, experiment, candidate, kind, reason) to records, mean lag and longest lag."""
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in store.query("SELECT * FROM pairs_v1").dicts():
        key = (row["experiment"], row["candidate"], "compared", row["verdict"])
        groups[(_minute(row), *key)].append(_lag_ms(row))
    for row in store.query("SELECT * FROM outcomes_v1").dicts():
        groups[(_minute(row), row["experiment"], "", row["kind"], row["reason"])].append(_lag_ms(row))
    return {key: (len(lags), sum(lags) / len(lags), max(lags)) for key, lags in groups.items()}


def _minute(row: dict[str, Any]) -> datetime:
    minute: datetime = row["ingested_at"].replace(second=0, microsecond=0)
    return minute


def _lag_ms(row: dict[str, Any]) -> int:
    lag: timedelta = row["ingested_at"] - row["mirrored_at"]
    return round(lag.total_seconds() * 1000)
