"""Golden runs over time: one rate or score of each run, with the baseline and what was asked for."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from dashboards.charts.hours import cells
from dashboards.charts.spec import Spec, field, rows, scale, time, time_tip, wall_texts
from dashboards.shell.clock import Clock
from dashboards.shell.palette import CANDIDATE, NEUTRAL, PURPLE, REFERENCE
from dashboards.words import Words

HEIGHT = 220
ROLES = {"candidate": CANDIDATE, "reference": REFERENCE}
SHAPES = {"passed": "circle", "failed": "cross", "incomplete": "diamond"}


def over_time(runs: pd.DataFrame, column: str, clock: Clock, say: Words) -> Spec:
    """`column` of each run; a run without it is left out. The baseline is a star with a dashed line.

    `runs`: run_id, started_at (UTC), role, endpoint_name (shown text), status, is_baseline, answered_cases,
    least_mean_score and `column`.
    """
    scored = runs[runs[column].notna()]
    roles = {role: say(f"golden.role_{role}") for role in ROLES}
    states = {status: status_words(say, status) for status in SHAPES}
    names = ("run_id", "role", "endpoint_name", "status", "is_baseline", "answered_cases", column)
    drawn = [
        {
            "at": at,
            "run": run[:8],
            "endpoint_name": endpoint,
            "state": states.get(status),
            "side": roles.get(role),
            "answered_cases": answered,
            "is_baseline": bool(is_baseline),
            column: value,
        }
        for at, run, role, endpoint, status, is_baseline, answered, value in zip(
            wall_texts(clock, scored["started_at"]), *(cells(scored[name]) for name in names), strict=True
        )
    ]
    title = say(f"golden.{column}")
    when = say("golden.axis_time", zone=clock.name)
    tooltip = [
        time_tip("at", when),
        field("run:N", title=say("golden.runs")),
        field("endpoint_name:N", title=say("golden.endpoint")),
        field("state:N", title=say("golden.status")),
        field(f"{column}:Q", title=title, format=".4f"),
        field("answered_cases:Q", title=say("golden.answered_cases")),
    ]
    sides = scale({roles[role]: colour for role, colour in ROLES.items()})
    shapes = scale({states[status]: shape for status, shape in SHAPES.items()})
    below = {"orient": "bottom", "title": None, "columns": 2, "symbolOpacity": 1}
    layers: list[Spec] = [
        {
            "data": rows(drawn),
            "encoding": {
                "x": time("at", when),
                "y": field(
                    f"{column}:Q",
                    title=title,
                    scale={"domain": [0, 1.08], "nice": False},
                    axis={"values": [0, 0.25, 0.5, 0.75, 1]},
                ),
                "color": field("side:N", scale=sides, legend=below),
                "tooltip": tooltip,
            },
            "layer": [
                {"mark": {"type": "line", "opacity": 0.6}},
                {
                    "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                    "encoding": {"shape": field("state:N", scale=shapes, legend=None)},
                },
            ],
        }
    ]
    baseline = [row for row in drawn if row["is_baseline"]]
    if baseline:
        layers.append(_rule(baseline[0][column], say("golden.baseline"), PURPLE, "right"))
        layers.append(
            {
                "data": rows(baseline),
                "mark": {"type": "text", "text": "★", "size": 18, "color": PURPLE},
                "encoding": {"x": field("at:T"), "y": field(f"{column}:Q"), "tooltip": tooltip},
            }
        )
    if column == "mean_score" and drawn:
        least = float(scored["least_mean_score"].iloc[-1])
        layers.append(_rule(least, say("golden.least"), NEUTRAL, "left"))
    return {"layer": layers, "height": HEIGHT + 70}


def _rule(value: float, name: str, colour: str, side: Literal["left", "right"]) -> Spec:
    """A dashed line at the value with its name at one end."""
    text = {
        "type": "text",
        "color": colour,
        "align": side,
        "baseline": "bottom",
        "dx": 3 if side == "left" else -3,
        "dy": -2,
    }
    return {
        "data": rows([{"value": value, "what": f"{name} {value:.3g}"}]),
        "encoding": {"y": field("value:Q")},
        "layer": [
            {
                "mark": {"type": "rule", "color": colour, "strokeDash": [5, 4]},
                "encoding": {"tooltip": field("what:N")},
            },
            {
                "mark": text,
                "encoding": {
                    "x": {"value": 0 if side == "left" else "width"},
                    "text": field("what:N"),
                },
            },
        ],
    }


def status_words(say: Words, status: str) -> str:
    """The status of a run or case, with its mark."""
    return say("golden.run_status_failed" if status == "failed" else f"golden.status_{status}")
