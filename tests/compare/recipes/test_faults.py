"""Recipes about faults and regressions: by route, slice, language, cause, and against the floor."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from scipy.stats import binomtest

from compare.result import Family, VerdictKind
from ingest.errors import FatalError
from ingest.observation import FailureKind
from ingest.pair import Mode, ReplayPlan
from tests.compare.recipes.world import LONG_AGO, NOON, RECENT, World, column, failed, fault

MIRRORED = ReplayPlan(Mode.MIRRORED, False, False, False)


def agresti_min(candidate: int, reference: int, pairs: int) -> tuple[float, float]:
    """Agresti and Min 2005: half a pair is added to each of the four cells, then Wald's interval."""
    c, b, n = candidate + 0.5, reference + 0.5, pairs + 2
    error = 1.959963984540054 * math.sqrt((c + b) - (c - b) ** 2 / n) / n
    return (c - b) / n - error, (c - b) / n + error


def wilson(faults: int, pairs: int) -> tuple[float, float]:
    interval = binomtest(faults, pairs).proportion_ci(0.95, method="wilson")
    return interval.low, interval.high


def out_of_the_rates(world: World, **changes: Any) -> None:
    """Three pairs that may move no rate."""
    world.worse("candidate", tags=("history_faulty",), **changes)
    world.worse("candidate", plan=MIRRORED, **changes)
    world.pair(verdict=VerdictKind.UNSCORED, **changes)


def test_faults_by_route(world: World) -> None:
    a, b = {"route": "a"}, {"route": "b"}
    for _ in range(4):
        world.worse("candidate", at=RECENT, request=a)
    world.worse("candidate", Family.JSON, at=RECENT, request=a)
    world.worse("reference", at=RECENT, request=a)
    for text_is_equal in (1.0, 0.0, 0.0, 0.0):
        world.pair(at=RECENT, request=a, noise={"exact_match": text_is_equal})
    world.pair(
        at=RECENT,
        request=b,
        verdict=VerdictKind.CANDIDATE_ERROR,
        candidate=failed(FailureKind.TOTAL_TIMEOUT),
    )
    world.pair(at=RECENT, request=b)
    out_of_the_rates(world, at=RECENT, request=a)
    world.worse("candidate", at=RECENT - timedelta(hours=2), request=a)
    world.flush()
    rows = {(row["route"], row["family"]): row for row in world.ask("faults_by_route")}
    assert {
        key: (row["pairs"], row["candidate_only"], row["reference_only"]) for key, row in rows.items()
    } == {
        ("a", "repetition"): (10, 4, 1),
        ("a", "json"): (10, 1, 0),
        ("b", "(no answer)"): (2, 1, 0),
    }
    loops = rows["a", "repetition"]
    assert loops["excess"] == pytest.approx(0.3)
    assert (loops["excess_low"], loops["excess_high"]) == pytest.approx(agresti_min(4, 1, 10))
    assert loops["repeats_differ"] == pytest.approx(0.75)
    assert rows["b", "(no answer)"]["repeats_differ"] is None
    later = {(row["route"], row["family"]): row for row in world.ask("faults_by_route", hours="3")}
    assert later["a", "repetition"]["candidate_only"] == 5


def test_fault_excess(world: World) -> None:
    for _ in range(5):
        world.worse("candidate")
    for _ in range(2):
        world.worse("reference")
    for _ in range(13):
        world.pair()
    out_of_the_rates(world)
    world.worse("candidate", at=LONG_AGO)
    world.worse("candidate", candidate_name="q8")
    world.flush()
    row, single = world.ask("fault_excess")
    assert (row["pairs"], row["left_out"], row["candidate_only"], row["reference_only"]) == (20, 3, 5, 2)
    assert row["excess"] == pytest.approx(3 / 20)
    assert (row["excess_low"], row["excess_high"]) == pytest.approx(agresti_min(5, 2, 20))
    # Wald's end is beyond what a rate can be.
    assert agresti_min(1, 0, 1)[1] > 1
    assert (single["candidate"], single["pairs"], single["excess_high"]) == ("q8", 1, 1.0)


LANGUAGES = {
    "de": "Was ist das und wie kann ich es mit dem Programm und der Datei machen, wenn ich nicht da bin?",
    "ja": "これは何ですか。ファイルを開くにはどうすればいいですか。",
}


def test_languages_that_degrade(world: World) -> None:
    def asked(language: str) -> dict[str, Any]:
        return {"body": {"model": "m", "messages": [{"role": "user", "content": LANGUAGES[language]}]}}

    for _ in range(3):
        world.worse("candidate", request=asked("ja"), scores={"edit_similarity": 0.25})
    world.pair(request=asked("ja"), scores={"edit_similarity": 0.75})
    world.worse("candidate", request=asked("de"))
    for _ in range(8):
        world.pair(request=asked("de"))
    world.worse("reference", request=asked("de"))
    world.pair(request={"body": {"model": "m", "messages": [{"role": "user", "content": "1 2 3"}]}})
    out_of_the_rates(world, request=asked("de"))
    world.flush()
    rows = world.ask("languages_that_degrade")
    assert column(rows, "request_language", "pairs", "regressions") == [
        ("ja", 4, 3),
        ("de", 10, 1),
        ("?", 1, 0),
    ]
    for row in rows:
        bounds = wilson(row["regressions"], row["pairs"])
        assert (row["rate_low"], row["rate_high"]) == pytest.approx(bounds, abs=1e-9)
    assert column(rows, "rate") == pytest.approx([0.75, 0.1, 0.0])
    assert column(rows, "reference_rate") == pytest.approx([0.0, 0.1, 0.0])
    assert column(rows, "edit_similarity_mean") == [pytest.approx(0.375), None, None]
    assert column(world.ask("languages_that_degrade", least_pairs="4"), "request_language") == ["ja", "de"]


def test_regressions_by_slice(world: World) -> None:
    for tenant, worse, pairs in (("t-1", 2, 5), ("t-2", 0, 3)):
        for number in range(pairs):
            request = {"tenant": tenant, "route": "a"}
            if number < worse:
                world.worse("candidate", request=request)
            else:
                world.pair(request=request)
    out_of_the_rates(world, request={"tenant": "t-1"})
    world.flush()
    rows = world.ask("regressions_by_slice", dimension="tenant")
    assert column(rows, "value", "pairs", "regressions") == [("t-1", 5, 2), ("t-2", 3, 0)]
    for row, counts in zip(rows, ((2, 5), (0, 3)), strict=True):
        assert (row["rate_low"], row["rate_high"]) == pytest.approx(wilson(*counts), abs=1e-9)
    assert column(world.ask("regressions_by_slice"), "value", "pairs") == [("a", 8)]
    for dimension, value in (("mode", "greedy"), ("kind", "chat"), ("prompt_length", "0-127")):
        assert column(world.ask("regressions_by_slice", dimension=dimension), "value") == [value]
    with pytest.raises(FatalError, match="dimension must be one"):
        world.ask("regressions_by_slice", dimension="colour")


def test_findings_by_code(world: World) -> None:
    loop = fault(Family.REPETITION, "candidate", code="loop", message="first")
    asked_for = fault(Family.REPETITION, "candidate", code="loop", message="asked for", is_fault=False)
    cut = fault(Family.TRUNCATION, "reference", code="cut")
    world.pair(at=RECENT - timedelta(minutes=3), findings=(loop, asked_for))
    world.pair(at=RECENT, findings=(fault(Family.REPETITION, "candidate", code="loop", message="last"), cut))
    world.pair(at=RECENT - timedelta(hours=30), findings=(loop,))
    world.flush()
    rows = world.ask("findings_by_code")
    assert column(rows, "of_family", "code", "side", "findings", "faults", "pairs") == [
        ("repetition", "loop", "candidate", 3, 2, 2),
        ("truncation", "cut", "reference", 1, 1, 1),
    ]
    assert (rows[0]["last_message"], rows[0]["last_at"]) == ("last", RECENT)
    assert column(world.ask("findings_by_code", family="truncation"), "code") == ["cut"]


def test_probable_causes(world: World) -> None:
    for _ in range(3):
        world.worse("candidate", cause="numeric")
    world.pair(
        verdict=VerdictKind.CANDIDATE_ERROR, cause="memory", candidate=failed(FailureKind.HTTP_ERROR, 500)
    )
    world.worse("reference", cause="sampler")
    world.pair()
    world.flush()
    rows = world.ask("probable_causes")
    assert column(rows, "verdict", "probable_cause", "pairs", "share") == [
        ("candidate_worse", "numeric", 3, 0.75),
        ("candidate_error", "memory", 1, 0.25),
    ]
    # 1 - (1 - 0.7)(1 - 0.2) of a loop and its verdict; 0.9 of an error alone (docs/metrics.md).
    assert column(rows, "severity_mean") == pytest.approx([0.76, 0.9], rel=1e-6)


def test_verdicts_by_day(world: World) -> None:
    for days, kind, pairs in (
        (0, VerdictKind.MATCH, 3),
        (0, VerdictKind.DIVERGED, 1),
        (1, VerdictKind.UNSCORED, 2),
        (12, VerdictKind.MATCH, 1),
    ):
        for _ in range(pairs):
            world.pair(at=NOON - timedelta(days=days), verdict=kind)
    world.flush()
    day = NOON.date()
    assert column(world.ask("verdicts_by_day"), "day", "verdict", "pairs", "share") == [
        (day - timedelta(days=1), "unscored", 2, 1.0),
        (day, "match", 3, 0.75),
        (day, "diverged", 1, 0.25),
    ]


def test_severity_histogram(world: World) -> None:
    # One share alone each: none, a loop with its verdict (0.76), an error (0.9), a divergence (0.1).
    for _ in range(2):
        world.pair()
    world.worse("candidate")
    world.pair(verdict=VerdictKind.CANDIDATE_ERROR, candidate=failed(FailureKind.CUT_STREAM))
    world.pair(verdict=VerdictKind.DIVERGED)
    world.flush()
    rows = world.ask("severity_histogram")
    assert column(rows, "severity_from", "pairs", "regressions") == [
        (0.0, 2, 0),
        (0.1, 1, 0),
        (0.7, 1, 1),
        (0.9, 1, 1),
    ]
    assert column(rows, "share") == pytest.approx([0.4, 0.2, 0.2, 0.2])


def test_worst_pairs(world: World) -> None:
    loop = world.worse("candidate", at=RECENT, request={"route": "a"})
    error = world.pair(
        at=RECENT,
        verdict=VerdictKind.CANDIDATE_ERROR,
        candidate=failed(FailureKind.HTTP_ERROR, 500),
        request={"route": "b"},
    )
    world.pair(at=RECENT)
    world.worse("candidate", at=RECENT, tags=("history_faulty",))
    world.worse("candidate", at=RECENT - timedelta(days=3))
    world.flush()
    rows = world.ask("worst_pairs")
    assert column(rows, "offset", "verdict", "on_route") == [
        (error, "candidate_error", "b"),
        (loop, "candidate_worse", "a"),
    ]
    assert column(rows, "severity") == pytest.approx([0.9, 0.76], rel=1e-6)
    assert rows[1]["why"] == "because candidate_worse"
    assert rows[1]["candidate_only_families"] == ["repetition"]
    assert column(world.ask("worst_pairs", route="a"), "offset") == [loop]
    assert column(world.ask("worst_pairs", limit="1"), "offset") == [error]
