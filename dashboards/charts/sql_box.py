"""A chart of whatever columns a person picks."""

from __future__ import annotations

from typing import Literal

import altair as alt
import pandas as pd

from dashboards.charts.times import AXIS
from dashboards.shell.palette import CANDIDATE, GOOD, NEUTRAL, PURPLE, REFERENCE, SKY, WARN

Kind = Literal["line", "bar", "points"]
KINDS: tuple[Kind, ...] = ("line", "bar", "points")

HEIGHT = 380
MOST_ROWS = 5_000
MOST_VALUES = 7
"""Colours that can be told apart; each has its own shape or dash besides."""

_COLOURS = [REFERENCE, CANDIDATE, GOOD, WARN, PURPLE, SKY, NEUTRAL]
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"]
_DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [10, 4], [4, 1]]


def picked(data: pd.DataFrame, x: str, y: str, by: str, kind: Kind, titles: tuple[str, str]) -> alt.Chart:
    """Column `y` (numbers) over `x`, a colour for each value of `by` ("": one colour).

    `titles` are those of the axes, with unit or zone. At most MOST_ROWS rows and MOST_VALUES values of `by`
    are given.
    """
    # Names of columns may hold what Vega reads as a path.
    drawn = pd.DataFrame({"x": data[x], "y": data[y]})
    tooltip = [_tip("x", drawn["x"], titles[0]), _tip("y", drawn["y"], titles[1])]
    chart = alt.Chart(drawn)
    if by:
        drawn["by"] = data[by].astype(str)
        names = sorted(set(drawn["by"]))[:MOST_VALUES]
        tooltip.append(alt.Tooltip("by:N", title=by))
        chart = alt.Chart(drawn).encode(
            color=alt.Color(
                "by:N",
                scale=alt.Scale(domain=names, range=_COLOURS[: len(names)]),
                legend=alt.Legend(orient="top", title=None, labelLimit=240),
            )
        )
        if kind == "points":
            chart = chart.encode(
                shape=alt.Shape("by:N", scale=alt.Scale(domain=names, range=_SHAPES), legend=None)
            )
        if kind == "line":
            chart = chart.encode(
                strokeDash=alt.StrokeDash("by:N", scale=alt.Scale(domain=names, range=_DASHES), legend=None)
            )
        if kind == "bar":
            chart = chart.encode(xOffset=alt.XOffset("by:N", sort=names))
    x_type = _type(drawn["x"], as_steps=kind == "bar")
    colour = alt.Undefined if by else REFERENCE
    marks = {
        "line": lambda: chart.mark_line(point=True, color=colour),
        "bar": lambda: chart.mark_bar(color=colour),
        "points": lambda: chart.mark_point(filled=True, size=60, color=colour),
    }
    made: alt.Chart = (
        marks[kind]()
        .encode(
            x=alt.X(
                f"x:{x_type}",
                title=titles[0],
                sort=None if x_type in "NO" else alt.Undefined,
                scale=alt.Scale(zero=False) if x_type == "Q" else alt.Undefined,
                axis=alt.Axis(**AXIS) if x_type == "T" else alt.Axis(labelLimit=160),
            ),
            y=alt.Y("y:Q", title=titles[1], scale=alt.Scale(zero=kind == "bar")),
            tooltip=tooltip,
        )
        .properties(height=HEIGHT)
    )
    return made


def default_kind(x: pd.Series) -> Kind:
    """What suits the column: a line over time, points over numbers, bars over names."""
    return {"T": "line", "Q": "points"}.get(_type(x, as_steps=False), "bar")  # type: ignore[return-value]


def _type(column: pd.Series, *, as_steps: bool) -> str:
    if pd.api.types.is_datetime64_any_dtype(column):
        return "T"
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return "O" if as_steps else "Q"
    return "N"


def _tip(name: str, column: pd.Series, title: str) -> alt.Tooltip:
    kind = _type(column, as_steps=False)
    if kind == "T":
        return alt.Tooltip(f"{name}:T", title=title, format="%Y-%m-%d %H:%M:%S")
    return alt.Tooltip(f"{name}:{kind}", title=title)
