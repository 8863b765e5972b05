"""A store of a service that has had a busy night: outcomes of every kind, hostile dead letters, a pause."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from compare.store import Store
from tests.compare.rollups.raw_rows import outcome, pair, put
from tests.dashboards.conftest import HOSTILE

TOPIC_ID = "topic-1"
MINUTES = 60
LAGS_S = (2.0, 8.0)
"""Of the pairs of partition 0 and 1."""
SKIPPED, AWAY, BUDGET, DEAD = 30, 12, 3, 5
URL = "http://127.0.0.1:1"


def begin_of(now: datetime) -> datetime:
    """The hour in which the pairs come: three before this one."""
    return now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)


def verdict_of(offset: int) -> str:
    return {0: "candidate_error", 1: "candidate_worse"}.get(offset % 10, "match")


def fill(store: Store, now: datetime | None = None) -> datetime:
    """Fill a migrated store as of `now`; returns the hour of the pairs.

    In its minute k, pair k of either partition. An hour later one record a minute is sampled out, SKIPPED of
    them. In the last hour come AWAY and BUDGET failed ones and DEAD dead letters.
    """
    now = now or datetime.now(UTC)
    begin = begin_of(now)
    common: dict[str, Any] = {"experiment": "busy", "topic_id": TOPIC_ID}
    pairs = []
    for offset in range(MINUTES):
        at = begin + timedelta(minutes=offset)
        for part, lag in enumerate(LAGS_S):
            row = pair(
                offset,
                at,
                **common,
                candidate="awq",
                verdict=verdict_of(offset),
                is_regression=offset % 10 < 2,
                partition=part,
            )
            pairs.append(row | {"ingested_at": at, "mirrored_at": at - timedelta(seconds=lag)})
    put(store, "pairs", pairs)
    put(store, "outcomes", _outcomes(begin, now, common))
    put(store, "dead_letters", [_letter(number, now, common) for number in range(DEAD)])
    put(store, "delivered_ranges", [_delivered(part, now, common) for part in range(2)])
    put(store, "token_use", [_use(name, day, now) for name in ("awq", "fp16") for day in range(3)])
    put(store, "experiments", [_settings(now)])
    put(
        store,
        "controls",
        [
            {
                "experiment": "busy",
                "endpoint_name": "awq",
                "ordered_at": now - timedelta(minutes=5),
                "action": "pause",
                "ordered_by": "anna",
                "reason": HOSTILE,
            }
        ],
    )
    put(store, "observations", [_answer(number, now, common) for number in range(8)])
    return begin


def _outcomes(begin: datetime, now: datetime, common: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    kinds = [("skipped", "sampled_out", "")] * SKIPPED
    kinds += [("failed", "endpoint_away", f'endpoint "awq" ({URL}) is away after 3 attempts: refused')] * AWAY
    kinds += [("failed", "budget", 'endpoint "fp16": the budget of 1000 tokens a day is used up')] * BUDGET
    kinds += [("dead_letter", "invalid_json", HOSTILE)] * DEAD
    for number, (kind, reason, detail) in enumerate(kinds):
        at = begin + timedelta(hours=1, minutes=number)
        if kind != "skipped":
            at = now - timedelta(minutes=50) + timedelta(seconds=number)
        row = outcome(MINUTES + number, at, kind, reason)
        rows.append(
            row | common | {"detail": detail, "partition": 0, "mirrored_at": at - timedelta(seconds=1)}
        )
    return rows


def _letter(number: int, now: datetime, common: dict[str, Any]) -> dict[str, Any]:
    value = b"{\xff" + HOSTILE.encode() + b"\x00" * number
    at = now - timedelta(minutes=50) + timedelta(seconds=number)
    return common | {
        "topic": "gnomon.mirror",
        "partition": 0,
        "offset": MINUTES + SKIPPED + AWAY + BUDGET + number,
        "source": "record",
        "reason": "invalid_json",
        "detail": HOSTILE,
        "request_id": "",
        "value": value,
        "headers": [("trace", b"1")],
        "mirrored_at": at,
        "ingested_at": at,
        "schema_guess": "json",
        "version": number + 1,
    }


def _delivered(part: int, now: datetime, common: dict[str, Any]) -> dict[str, Any]:
    end = (MINUTES + SKIPPED + AWAY + BUDGET + DEAD, MINUTES)[part]
    return common | {
        "consumer_group": "gnomon-busy",
        "topic": "gnomon.mirror",
        "partition": part,
        "first_offset": 0,
        "end_offset": end,
        "records": end,
        "lost_retention": 0,
        "ingested_at": now,
        "version": 1,
    }


def _use(name: str, day: int, now: datetime) -> dict[str, Any]:
    return {
        "experiment": "busy",
        "endpoint_name": name,
        "day": (now - timedelta(days=day)).date(),
        "run_id": "one",
        "prompt_tokens": 1_000 * (day + 1),
        "completion_tokens": 200,
        "estimated_tokens": 60,
        "calls": 10,
        "ingested_at": now,
        "version": 1,
    }


def _settings(now: datetime) -> dict[str, Any]:
    settings = {
        "experiment": {"name": "busy", "reference": "fp16", "candidates": ["awq"]},
        "endpoints": {
            "awq": {"url": URL, "top_logprobs": 20, "tokens_per_day": 10_000},
            "fp16": {"url": URL, "top_logprobs": 20, "tokens_per_day": 1_000},
        },
    }
    return {
        "experiment": "busy",
        "settings_hash": "s1",
        "settings": json.dumps(settings),
        "ingested_at": now,
        "version": 1,
    }


def _answer(number: int, now: datetime, common: dict[str, Any]) -> dict[str, Any]:
    return common | {
        "topic": "gnomon.mirror",
        "partition": 0,
        "offset": number,
        "attempt_id": uuid.UUID(int=number + 1),
        "role": ("reference", "candidate")[number % 2],
        "endpoint_name": ("fp16", "awq")[number % 2],
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "total_ms": 500.0,
        "text": HOSTILE,
        "ingested_at": now,
        "version": 1,
    }
