"""Golden runs over time: one rate or score of each run, with the baseline and what was asked for."""

from __future__ import annotations

from typing import Literal

import altair as alt
import pandas as pd

from dashboards.charts.times import time_axis
from dashboards.shell.clock import Clock
from dashboards.shell.palette import CANDIDATE, NEUTRAL, PURPLE, REFERENCE
from dashboards.words import Words

HEIGHT = 220
ROLES = {"candidate": CANDIDATE, "reference": REFERENCE}
SHAPES = {"passed": "circle", "failed": "cross", "incomplete": "diamond"}


def over_time(runs: pd.DataFrame, column: str, clock: Clock, say: Words) -> alt.LayerChart:
    """`column` of each run; a run without it is left out. The baseline is a star with a dashed line.

    `runs`: run_id, started_at (UTC), role, endpoint_name (shown text), status, is_baseline, answered_cases,
    least_mean_score and `column`.
    """
    drawn = runs.dropna(subset=[column]).assign(at=clock.wall(runs["started_at"]))
    roles = {role: say(f"golden.role_{role}") for role in ROLES}
    states = {status: status_words(say, status) for status in SHAPES}
    drawn["side"], drawn["state"] = drawn["role"].map(roles), drawn["status"].map(states)
    drawn["run"] = drawn["run_id"].str.slice(0, 8)
    title, time = say(f"golden.{column}"), say("golden.axis_time", zone=clock.name)
    tooltip = [
        alt.Tooltip("at:T", title=time, format="%Y-%m-%d %H:%M:%S"),
        alt.Tooltip("run:N", title=say("golden.runs")),
        alt.Tooltip("endpoint_name:N", title=say("golden.endpoint")),
        alt.Tooltip("state:N", title=say("golden.status")),
        alt.Tooltip(f"{column}:Q", title=title, format=".4f"),
        alt.Tooltip("answered_cases:Q", title=say("golden.answered_cases")),
    ]
    base = alt.Chart(drawn).encode(
        x=alt.X("at:T", title=time, axis=time_axis()),
        y=alt.Y(
            f"{column}:Q",
            title=title,
            scale=alt.Scale(domain=[0, 1.08], nice=False),
            axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1]),
        ),
        color=alt.Color(
            "side:N",
            scale=alt.Scale(domain=list(roles.values()), range=list(ROLES.values())),
            legend=alt.Legend(orient="bottom", title=None, columns=2, symbolOpacity=1),
        ),
        tooltip=tooltip,
    )
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        shape=alt.Shape(
            "state:N",
            scale=alt.Scale(domain=list(states.values()), range=list(SHAPES.values())),
            legend=None,
        )
    )
    layers: list[alt.Chart | alt.LayerChart] = [base.mark_line(opacity=0.6), points]
    baseline = drawn[drawn["is_baseline"].astype(bool)]
    if not baseline.empty:
        layers += _rule(float(baseline[column].iloc[0]), say("golden.baseline"), PURPLE, "right")
        star = alt.Chart(baseline).mark_text(text="★", size=18, color=PURPLE)
        layers.append(star.encode(x=alt.X("at:T"), y=alt.Y(f"{column}:Q"), tooltip=tooltip))
    if column == "mean_score" and not drawn.empty:
        layers += _rule(float(drawn["least_mean_score"].iloc[-1]), say("golden.least"), NEUTRAL, "left")
    chart: alt.LayerChart = alt.layer(*layers, height=HEIGHT + 70)  # type: ignore[assignment]
    return chart


def _rule(
    value: float, name: str, colour: str, side: Literal["left", "right"]
) -> list[alt.Chart | alt.LayerChart]:
    """A dashed line at the value with its name at one end."""
    line = alt.Chart(pd.DataFrame({"value": [value], "what": [f"{name} {value:.3g}"]}))
    return [
        line.mark_rule(color=colour, strokeDash=[5, 4]).encode(
            y=alt.Y("value:Q"), tooltip=alt.Tooltip("what:N")
        ),
        line.mark_text(
            color=colour, align=side, baseline="bottom", dx=3 if side == "left" else -3, dy=-2
        ).encode(x=alt.XValue(0 if side == "left" else "width"), y=alt.Y("value:Q"), text=alt.Text("what:N")),  # type: ignore[no-untyped-call]
    ]


def status_words(say: Words, status: str) -> str:
    """The status of a run or case, with its mark."""
    return say("golden.run_status_failed" if status == "failed" else f"golden.status_{status}")
