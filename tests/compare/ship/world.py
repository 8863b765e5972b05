"""Planted pairs, put into the tables as they are, and counted again by plain Python."""

from __future__ import annotations

import random
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct, structs

from compare.store import Store

DAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=2)
"""Made at run time: the tables drop what is older than their TTL."""


class Planted(Struct, frozen=True):
    offset: int
    experiment: str
    request_hash: str
    mirrored_at: datetime
    is_candidate_only_fault: bool = False
    is_reference_only_fault: bool = False
    partition: int = 0
    route: str = "r"
    tenant: str = "t"
    language: str = "en"
    kind: str = "chat"
    prompt_tokens: int | None = 100
    verdict: str = "match"
    mode: str = "greedy"
    tags: dict[str, str] | list[str] = []
    candidate: str = "q4"
    reference: str = "full"
    severity: float = 0.0
    topic_id: str = "topic-1"
    candidate_only_families: list[str] = []
    reasons: list[str] = []
    kl_forced_mean_nats: float | None = None
    reference_is_schema_valid: float | None = None
    candidate_is_schema_valid: float | None = None


def random_pairs(experiment: str, count: int, *, seed: int) -> list[Planted]:
    """Two days of pairs: repeats, shared requests, slices, pairs that do not count."""
    rng = random.Random(seed)
    pairs = []
    for offset in range(count):
        fault = rng.choices((0, 1, -1), (0.9, 0.07, 0.03))[0]
        pairs.append(
            Planted(
                offset=offset,
                experiment=experiment,
                request_hash=f"{rng.randrange(count // 2):032x}",
                mirrored_at=DAY + timedelta(milliseconds=rng.randrange(36 * 3600 * 1000)),
                is_candidate_only_fault=fault == 1,
                is_reference_only_fault=fault == -1,
                partition=rng.randrange(3),
                route=rng.choice(("", "a", "b", "c")),
                tenant=rng.choice(("", "x", "y")),
                language=rng.choice(("", "en", "zh")),
                kind=rng.choice(("chat", "json")),
                prompt_tokens=rng.choice((None, 5, 600)),
                verdict=rng.choices(("match", "unscored"), (0.95, 0.05))[0],
                mode=rng.choices(("greedy", "mirrored"), (0.95, 0.05))[0],
                tags=["history_faulty"] if rng.random() < 0.03 else [],
            )
        )
    return pairs


def plant(store: Store, pairs: Sequence[Planted], *, end: int | None = None) -> None:
    """Store the pairs, and a delivered range up to `end` for each partition (over all without it)."""
    columns = (*Planted.__struct_fields__, "request_id", "topic", "attempt_id", "ingested_at", "version")
    rows = [
        (
            *(getattr(pair, name) for name in Planted.__struct_fields__),
            f"req-{pair.offset}",
            "gnomon.mirror",
            str(uuid.uuid4()),
            pair.mirrored_at + timedelta(seconds=2),
            1,
        )
        for pair in pairs
    ]
    store.insert("pairs", columns, rows)
    places = {(pair.experiment, pair.topic_id, pair.partition) for pair in pairs}
    for experiment, topic_id, partition in sorted(places):
        own = [
            p for p in pairs if (p.experiment, p.topic_id, p.partition) == (experiment, topic_id, partition)
        ]
        last = max(pair.offset for pair in own) + 1 if end is None else end
        store.insert(
            "delivered_ranges",
            (
                "experiment",
                "consumer_group",
                "topic",
                "topic_id",
                "partition",
                "first_offset",
                "end_offset",
                "records",
                "ingested_at",
                "version",
            ),
            [(experiment, "g", "gnomon.mirror", topic_id, partition, 0, last, len(own), DAY, 1)],
        )


def is_counted(pair: Planted) -> bool:
    return pair.verdict != "unscored" and pair.mode != "mirrored" and "history_faulty" not in pair.tags


def length_of(pair: Planted) -> str:
    return "" if pair.prompt_tokens is None else "0-127" if pair.prompt_tokens < 128 else "512-2047"


def brute_force(pairs: Iterable[Planted]) -> dict[tuple[str, str], tuple[int, int, int]]:
    """(dimension, value) -> (candidate only, reference only, neither), the whole under ('', '')."""
    ordered = sorted(
        filter(is_counted, pairs), key=lambda pair: (pair.mirrored_at, pair.partition, pair.offset)
    )
    seen = set()
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for pair in ordered:
        hour = pair.mirrored_at.replace(minute=0, second=0, microsecond=0)
        place = 0 if pair.is_candidate_only_fault else 1 if pair.is_reference_only_fault else 2
        by_request = [("language", pair.language), ("kind", pair.kind), ("prompt_length", length_of(pair))]
        groups = [("", [("", ""), *by_request])]
        groups += [(f"route:{pair.route}", [("route", pair.route)])]
        groups += [(f"tenant:{pair.tenant}", [("tenant", pair.tenant)])]
        for name, slices in groups:
            if (name, hour, pair.request_hash) in seen:
                continue
            seen.add((name, hour, pair.request_hash))
            for slice_ in slices:
                if slice_ == ("", "") or slice_[1]:
                    counts[slice_][place] += 1
    return {key: (one[0], one[1], one[2]) for key, one in counts.items()}


def changed(pair: Planted, **changes: object) -> Planted:
    return structs.replace(pair, **changes)
