"""Charts that are made as plain dicts: Vega-Lite's own schema reads them, and JSON their rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest

from dashboards.asked import records
from dashboards.charts import alerts, drift, golden, operations, overview, pair, sql_box
from dashboards.shell.clock import Clock
from dashboards.words import Words

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
SAY, CLOCK = Words("en"), Clock("Asia/Shanghai")
HOURS = pd.DataFrame(
    {
        "hour_at": [START + timedelta(hours=hour) for hour in range(4)],
        "pairs": [10, 20, 30, 40],
        "observed": [0.1, None, 0.3, 0.2],
        "baseline": [None] * 4,
        "tolerated": [0.15] * 4,
        "statistic": [0.0, 1.0, None, 99.0],
        "threshold": [100.0] * 4,
    }
)
ALERT = {
    "change_at": START + timedelta(hours=1),
    "started_at": START,
    "fired_at": START + timedelta(hours=3),
    "change_earliest_at": START,
    "change_latest_at": START + timedelta(hours=2),
}
RUNS = pd.DataFrame(
    {
        "run_id": [f"{number}0000000-run" for number in range(3)],
        "started_at": [START + timedelta(hours=hour) for hour in range(3)],
        "role": ["candidate", "reference", "candidate"],
        "endpoint_name": ["q4", "fp16", "q4"],
        "status": ["passed", "failed", "incomplete"],
        "is_baseline": [True, False, False],
        "answered_cases": [5, 5, 3],
        "least_mean_score": [0.9, 0.9, 0.9],
        "mean_score": [0.95, None, 0.5],
    }
)
MINUTES = pd.DataFrame(
    {
        "at": [START, START, START, START + timedelta(minutes=5)],
        "kind": ["skipped", "compared", "compared", "compared"],
        "reason": ["sampled_out", "match", "diverged", "match"],
        "records": [10, 15, 5, 20],
    }
)
USE = pd.DataFrame(
    {
        "endpoint": ["awq", "fp16"],
        "day": [START.date()] * 2,
        "prompt_tokens": [100, 200],
        "completion_tokens": [10, 20],
        "calls": [1, 2],
    }
)
RNG = np.random.default_rng(5)
SAMPLES = RNG.random(50), RNG.random(60)
NAMES = ["before", "now"]


def check(spec: dict[str, Any], kind: type[alt.LayerChart] | type[alt.VConcatChart] = alt.LayerChart) -> None:
    """Raises unless Vega-Lite knows all of it and JSON can hold its rows."""
    json.dumps(spec, allow_nan=False)
    kind.from_dict(spec, validate=True)


@pytest.mark.parametrize("is_ratio", [False, True])
def test_the_charts_of_a_detector_fit_the_schema(is_ratio: bool) -> None:
    check(drift.by_hour(records(HOURS), CLOCK, SAY))
    check(drift.evidence_by_hour(records(HOURS), CLOCK, SAY))
    for before, now in (SAMPLES, (np.array([0.0, 1.0]), np.array([1.0]))):
        check(drift.distribution(before, now, NAMES, SAY, "x", is_ratio=is_ratio))
        check(drift.ecdf(before, now, NAMES, SAY, "x", is_ratio=is_ratio))
    slices = pd.DataFrame(
        {
            "slice": ["a", "b"],
            "excess": [0.2, 0.1],
            "low": [0.1, None],
            "high": [0.3, 0.2],
            "requests": [5, 6],
        }
    )
    check(drift.excess(records(slices), SAY, "excess"))


def test_the_other_charts_fit_the_schema() -> None:
    check(alerts.around_change(records(HOURS), ALERT, CLOCK, SAY))
    unknown = {**ALERT, "change_at": None, "change_latest_at": None}
    check(alerts.around_change(records(HOURS), unknown, CLOCK, SAY))
    check(golden.over_time(RUNS, "mean_score", CLOCK, SAY))
    check(operations.tokens(USE, SAY))
    lags = pd.DataFrame({"at": [START], "records": [3], "mean": [1.5], "longest": [None]})
    check(operations.lag(lags, CLOCK, SAY))
    step = {"token": "a", "reference_top1": "a", "candidate_top1": "b", "kl_lower_nats": None}
    steps = [{"position": 0, **step, "reference_logprob": -0.5, "candidate_logprob": None}]
    check(pair.forced_positions(steps, SAY), alt.VConcatChart)


def test_the_charts_of_the_overview_fit_the_schema() -> None:
    slices = [
        {"slice": "all", "excess": 0.01, "low": -0.01, "high": 0.03, "pairs": 300, "side": "across"},
        {"slice": "chat", "excess": 0.05, "low": 0.03, "high": 0.9, "pairs": 3, "side": "over"},
    ]
    check(overview.bounds(slices, 0.02, SAY))
    check(overview.verdict_bar({"match": 50, "candidate_worse": 1}, SAY))
    check(overview.fault_bar([("json", "candidate only", 3), ("json", "reference only", 1)], SAY))
    at = "2026-03-01T18:00:00.000"
    for form, marks in ((".4f", [(at, "q4 to q5")]), (".1%", []), (",.0f", [])):
        lines: list[overview.Line] = [("q4", "#111", [0.1], [30]), ("fp16", "#222", [None], [0])]
        check(overview.over_time([at], lines, "rate", marks, "UTC", SAY, form))


PICKED = pd.DataFrame(
    {
        "at (UTC)": pd.to_datetime(["2026-03-01T10:00", "NaT", "2026-03-01T12:30"]),
        "a.b[0]": [1.5, float("nan"), float("inf")],
        "name": ["z", "a", "z"],
        "is": [True, False, True],
    }
)


@pytest.mark.parametrize("kind", sql_box.KINDS)
@pytest.mark.parametrize("by", ["", "name", "is"])
@pytest.mark.parametrize("x", list(PICKED))
def test_the_chart_of_picked_columns_fits_the_schema(x: str, by: str, kind: sql_box.Kind) -> None:
    check(sql_box.picked(PICKED, x, "a.b[0]", by, kind, (x, "a.b[0]")))


def test_picked_columns_are_drawn_as_they_are_and_told_apart_by_more_than_a_colour() -> None:
    (line,) = sql_box.picked(PICKED, "at (UTC)", "a.b[0]", "name", "line", ("when", "what"))["layer"]
    assert line["data"]["values"] == [
        {"x": "2026-03-01T10:00:00.000", "y": 1.5, "by": "z"},
        {"x": None, "y": None, "by": "a"},
        {"x": "2026-03-01T12:30:00.000", "y": None, "by": "z"},
    ]
    parts = line["encoding"]
    assert [parts[name]["title"] for name in ("x", "y")] == ["when", "what"]
    assert parts["strokeDash"]["scale"] == {"domain": ["a", "z"], "range": [[1, 0], [6, 3]]}
    (bar,) = sql_box.picked(PICKED, "name", "a.b[0]", "is", "bar", ("n", "v"))["layer"]
    # Names stand in the order of the rows; bars begin at nothing.
    assert (bar["encoding"]["x"]["type"], bar["encoding"]["x"]["sort"]) == ("nominal", None)
    assert bar["encoding"]["y"]["scale"] == {"zero": True}
    assert bar["encoding"]["xOffset"]["sort"] == ["False", "True"]
    (points,) = sql_box.picked(PICKED, "a.b[0]", "a.b[0]", "name", "points", ("n", "v"))["layer"]
    assert points["encoding"]["x"]["scale"] == points["encoding"]["y"]["scale"] == {"zero": False}
    assert points["encoding"]["shape"]["scale"]["range"] == ["circle", "square"]
    assert [sql_box.default_kind(PICKED[name]) for name in PICKED] == ["line", "points", "bar", "bar"]


def test_outcomes_of_a_step_are_stacked_in_their_order_and_times_are_the_zones() -> None:
    spec = operations.throughput(MINUTES, 5, CLOCK, SAY)
    check(spec)
    rows = spec["layer"][0]["data"]["values"]
    found = [(row["begin"], row["end"], row["bottom"], row["top"], row["records"]) for row in rows]
    # 20 compared, then 10 skipped in five minutes; Shanghai is eight hours ahead.
    assert found == [
        ("2026-03-01T18:00:00.000", "2026-03-01T18:05:00.000", 0.0, 4.0, 20),
        ("2026-03-01T18:00:00.000", "2026-03-01T18:05:00.000", 4.0, 6.0, 10),
        ("2026-03-01T18:05:00.000", "2026-03-01T18:10:00.000", 0.0, 4.0, 20),
    ]


def test_an_hour_without_a_value_is_a_gap_and_a_line_without_any_is_left_out() -> None:
    spec = drift.by_hour(records(HOURS), CLOCK, SAY)
    rows = spec["layer"][0]["data"]["values"]
    lines = {
        name: [row["value"] for row in rows if row["line"] == name] for name in {r["line"] for r in rows}
    }
    assert lines == {SAY("drift.observed"): [0.1, None, 0.3, 0.2], SAY("drift.tolerated"): [0.15] * 4}
