"""Recipes about text, structure, tools, latency, and why a score is missing."""

from __future__ import annotations

import math
import statistics
from datetime import timedelta

import numpy as np
import pytest
from scipy.stats import binomtest

from compare.result import VerdictKind
from ingest.observation import FailureKind
from tests.compare.recipes.world import LONG_AGO, NOON, RECENT, World, answered, column, failed


def test_schema_regressions_by_path(world: World) -> None:
    def pair(
        enforced: bool | None, candidate_valid: float, *paths: str, reference_valid: float = 1.0
    ) -> None:
        scores = {"reference_is_schema_valid": reference_valid, "candidate_is_schema_valid": candidate_valid}
        changes = {"is_structure_enforced": enforced, "differing_paths": paths}
        world.pair(scores=scores, comparison=changes)

    pair(True, 0.0, "items[0].price", "items[12].price", "name")
    pair(True, 0.0)
    pair(True, 1.0, "name")
    pair(True, 1.0)
    pair(True, 0.0, "name", reference_valid=0.0)
    pair(False, 0.0, "name", *(f"key{number}" for number in range(60)))
    pair(False, 1.0)
    world.pair(comparison={"differing_paths": ("name",)})
    world.flush()
    rows = world.ask("schema_regressions_by_path")
    assert len(rows) == 3 + 50
    shown = [
        "is_structure_enforced",
        "path",
        "valid_pairs",
        "regressions",
        "path_regressions",
        "differing_pairs",
    ]
    found = {row[:2]: row[2:] for row in column(rows, *shown)}
    assert {key: value for key, value in found.items() if key[0]} == {
        (True, "(no path)"): (4, 2, 1, 1),
        (True, "items[*].price"): (4, 2, 1, 1),
        (True, "name"): (4, 2, 1, 2),
    }
    assert found[False, "name"] == (2, 1, 1, 1)
    assert (False, "key48") in found
    assert not [path for _, path in found if "more" in path]
    rates = {(row["is_structure_enforced"], row["path"]): row for row in rows}
    assert rates[True, "name"]["path_regression_rate"] == 0.25
    assert rates[True, "name"]["differing_rate"] == 0.5


def test_tool_call_disagreements(world: World) -> None:
    def pair(names: float, arguments: float | None, *paths: str, route: str = "a") -> None:
        scores = {"tool_name_agreement": names}
        if arguments is not None:
            scores["tool_arguments_agreement"] = arguments
        world.pair(scores=scores, comparison={"differing_paths": paths}, request={"route": route})

    city, day = "tool_calls[0].arguments.city", "tool_calls[0].arguments.day"
    pair(1.0, 0.5, city)
    pair(1.0, 0.0, city, day, "not.a.tool")
    pair(0.0, None, "tool_calls[0].name")
    pair(1.0, 1.0)
    pair(1.0, 1.0, route="b")
    world.pair()
    world.flush()
    rows = world.ask("tool_call_disagreements")
    assert column(rows, "route", "pairs", "other_tools", "other_arguments") == [
        ("a", 4, 1, 2),
        ("b", 1, 0, 0),
    ]
    assert column(rows, "name_agreement_mean", "arguments_agreement_mean") == [(0.75, 0.5), (1.0, 1.0)]
    assert rows[0]["argument_paths"] == [(city, 2), (day, 1), ("tool_calls[0].name", 1)]
    assert rows[1]["argument_paths"] == []


def test_refusal_flips(world: World) -> None:
    flipped = [
        world.pair(scores={"refusal_flip": flip}, request={"route": "a"})
        for flip in (1.0, 1.0, 0.0, 0.0, 0.0)
        if flip
    ]
    for _ in range(3):
        world.pair(scores={"refusal_flip": 0.0}, request={"route": "a"})
    for flip in (0.0, 0.0, 0.0, 1.0):
        world.pair(request={"route": "a"}, noise={"refusal_flip": flip})
    world.pair(scores={"refusal_flip": 0.0}, request={"route": "b"})
    world.flush()
    first, second = world.ask("refusal_flips")
    assert (first["route"], first["pairs"], first["flips"]) == ("a", 5, 2)
    interval = binomtest(2, 5).proportion_ci(0.95, method="wilson")
    assert (first["rate_low"], first["rate_high"]) == pytest.approx((interval.low, interval.high))
    assert first["repeats_flip_rate"] == 0.25
    assert first["request_ids"] == [f"r-{offset}" for offset in flipped]
    assert (second["route"], second["flips"], second["repeats_flip_rate"]) == ("b", 0, None)
    assert second["rate_low"] == 0.0


def test_noise_floor(world: World) -> None:
    candidate, repeat = [0.5, 0.25, 0.75], [1.0, 0.75, 0.5]
    for mine, again in zip(candidate, repeat, strict=True):
        world.pair(scores={"edit_similarity": mine}, noise={"edit_similarity": again})
    world.pair(
        scores={"edit_similarity": 0.5, "numbers_differ": 3.0},
        candidate_noise={"edit_similarity": 1.0, "numbers_differ": 1.0},
    )
    world.pair(scores={"edit_similarity": 0.0})
    world.pair(scores={"edit_similarity": 0.0}, noise={"edit_similarity": 1.0}, tags=("history_faulty",))
    world.pair(noise={"edit_similarity": 1.0})
    world.flush()
    rows = world.ask("noise_floor")
    assert column(rows, "metric", "side", "requests") == [
        ("edit_similarity", "candidate", 1),
        ("edit_similarity", "reference", 3),
        ("numbers_differ", "candidate", 1),
    ]
    differences = [again - mine for mine, again in zip(candidate, repeat, strict=True)]
    assert rows[1]["candidate_mean"] == pytest.approx(statistics.fmean(candidate))
    assert rows[1]["repeat_mean"] == pytest.approx(statistics.fmean(repeat))
    assert rows[1]["difference"] == pytest.approx(statistics.fmean(differences))
    assert rows[1]["standard_error"] == pytest.approx(statistics.stdev(differences) / math.sqrt(3))
    assert column(rows, "difference")[::2] == [0.5, 2.0]
    assert column(rows, "standard_error")[::2] == [None, None]


def test_unscored_reasons(world: World) -> None:
    for _ in range(3):
        world.pair(at=RECENT, unscored={"kl_forced_mean_nats": "not_asked", "cosine_similarity": "too_long"})
    world.pair(at=RECENT, unscored={"kl_forced_mean_nats": "constrained"})
    world.pair(at=LONG_AGO, unscored={"kl_forced_mean_nats": "constrained"})
    world.flush()
    assert column(world.ask("unscored_reasons"), "metric_name", "reason", "pairs", "share") == [
        ("cosine_similarity", "too_long", 3, 0.75),
        ("kl_forced_mean_nats", "not_asked", 3, 0.75),
        ("kl_forced_mean_nats", "constrained", 1, 0.25),
    ]
    only = world.ask("unscored_reasons", metric="cosine_similarity")
    assert column(only, "reason") == ["too_long"]


def test_latency_by_day(world: World) -> None:
    reference, candidate = [100.0, 200.0, 300.0, 900.0], [50.0, 60.0, 70.0, 80.0]
    for mine, other in zip(reference, candidate, strict=True):
        world.pair(
            scores={
                "reference_total_ms": mine,
                "candidate_total_ms": other,
                "candidate_first_token_ms": other / 10,
                "reference_tokens_per_s": mine / 2,
                "candidate_tokens_per_s": other / 2,
            }
        )
    world.pair(scores={"reference_total_ms": 9000.0})
    world.pair(at=NOON - timedelta(days=1), scores={"reference_total_ms": 1.0, "candidate_total_ms": 2.0})
    world.flush()
    rows = world.ask("latency_by_day")
    day = NOON.date()
    assert column(rows, "day", "side", "pairs") == [
        (day - timedelta(days=1), "reference", 1),
        (day - timedelta(days=1), "candidate", 1),
        (day, "reference", 4),
        (day, "candidate", 4),
    ]
    for row, values in zip(rows[2:], (reference, candidate), strict=True):
        for percent in (50, 95, 99):
            assert row[f"total_p{percent}_ms"] == pytest.approx(np.quantile(values, percent / 100))
        for percent in (50, 5, 1):
            speed = np.quantile(values, percent / 100) / 2
            assert row[f"tokens_per_s_p{percent}"] == pytest.approx(speed)
    assert rows[2]["first_token_p95_ms"] is None
    assert rows[3]["first_token_p95_ms"] == pytest.approx(np.quantile(candidate, 0.95) / 10)


def test_length_outliers(world: World) -> None:
    offsets = {
        ratio: world.pair(at=RECENT, scores={"length_ratio": ratio})
        for ratio in (0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 16.0)
    }
    world.pair(at=RECENT)
    world.flush()
    rows = world.ask("length_outliers")
    assert column(rows, "offset") == [offsets[ratio] for ratio in (0.0, 16.0, 0.1, 3.0)]
    doublings = [None, 4.0, math.log2(10), math.log2(3)]
    assert column(rows, "doublings") == [
        None if value is None else pytest.approx(value) for value in doublings
    ]
    assert column(world.ask("length_outliers", factor="12"), "length_ratio") == [0.0, 16.0]


def test_finish_reasons(world: World) -> None:
    def ends(reference: str | None, candidate: str | None, tokens: int | None = 10) -> None:
        world.pair(
            reference=answered(finish_reason=reference, completion_tokens=10),
            candidate=answered(finish_reason=candidate, completion_tokens=tokens),
        )

    ends("stop", "stop")
    ends("stop", "length", 30)
    ends("stop", "length", 50)
    ends("stop", "length", None)
    world.pair(
        reference=answered(finish_reason=None),
        candidate=failed(FailureKind.CUT_STREAM),
        verdict=VerdictKind.CANDIDATE_ERROR,
    )
    world.flush()
    rows = world.ask("finish_reasons")
    assert column(rows, "reference_end", "candidate_end", "is_same", "pairs", "share") == [
        ("stop", "length", 0, 3, 0.6),
        ("?", "cut_stream", 0, 1, 0.2),
        ("stop", "stop", 1, 1, 0.2),
    ]
    assert column(rows, "completion_ratio") == [4.0, None, 1.0]
