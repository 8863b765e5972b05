"""A chart of whatever columns a person picks."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pandas as pd

from dashboards.charts.hours import cell
from dashboards.charts.spec import Spec, field, rows, scale, time_tip
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
_MARKS: dict[Kind, Spec] = {
    "line": {"type": "line", "point": True},
    "bar": {"type": "bar"},
    "points": {"type": "point", "filled": True, "size": 60},
}


def picked(data: pd.DataFrame, x: str, y: str, by: str, kind: Kind, titles: tuple[str, str]) -> Spec:
    """Column `y` (numbers) over `x`, a colour for each value of `by` ("": one colour).

    `titles` are those of the axes, with unit or zone; times are of the wall clock. At most MOST_ROWS rows and
    MOST_VALUES values of `by` are given.
    """
    # Names of columns may hold what Vega reads as a path.
    columns = {"x": _values(data[x]), "y": _values(data[y])}
    encoding: Spec = {
        "x": _across(data[x], titles[0], as_steps=kind == "bar"),
        "y": field("y:Q", title=titles[1], scale={"zero": kind == "bar"}),
        "tooltip": [_tip("x", data[x], titles[0]), _tip("y", data[y], titles[1])],
    }
    mark = dict(_MARKS[kind])
    if by:
        columns["by"] = data[by].astype(str).tolist()
        encoding |= _apart(sorted(set(columns["by"]))[:MOST_VALUES], kind)
        encoding["tooltip"].append(field("by:N", title=by))
    else:
        mark["color"] = REFERENCE
    drawn = rows(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return {"layer": [{"data": drawn, "mark": mark, "encoding": encoding}], "height": HEIGHT}


def default_kind(x: pd.Series) -> Kind:
    """What suits the column: a line over time, points over numbers, bars over names."""
    return {"T": "line", "Q": "points"}.get(_type(x), "bar")  # type: ignore[return-value]


def _across(column: pd.Series, title: str, *, as_steps: bool) -> Spec:
    kind = _type(column)
    if kind == "T":
        return field("x:T", title=title, axis=AXIS)
    labels = {"labelLimit": 160}
    if kind == "Q" and not as_steps:
        return field("x:Q", title=title, scale={"zero": False}, axis=labels)
    # In the order of the rows, as the statement has it.
    return {
        **field("x:N", title=title, sort=None, axis=labels),
        "type": "ordinal" if kind == "Q" else "nominal",
    }


def _apart(names: list[str], kind: Kind) -> Spec:
    """What tells the values of `by` from each other: a colour, and a shape, dash or place besides."""
    legend = {"orient": "top", "title": None, "labelLimit": 240}
    found = {"color": field("by:N", scale=scale(_each(names, _COLOURS)), legend=legend)}
    if kind == "points":
        found["shape"] = field("by:N", scale=scale(_each(names, _SHAPES)), legend=None)
    elif kind == "line":
        found["strokeDash"] = field("by:N", scale=scale(_each(names, _DASHES)), legend=None)
    else:
        found["xOffset"] = field("by:N", sort=names)
    return found


def _each(names: list[str], looks: list[Any]) -> dict[str, Any]:
    return dict(zip(names, looks, strict=False))


def _values(column: pd.Series) -> list[Any]:
    """As JSON holds them: a time as a browser reads it, None where there is no value or it is infinite."""
    if _type(column) == "T":
        times = column.to_numpy("datetime64[ms]")
        texts: list[str] = np.datetime_as_string(times).tolist()
        return [None if at is pd.NaT else text for at, text in zip(column, texts, strict=True)]
    return [None if isinstance(one, float) and math.isinf(one) else cell(one) for one in column.tolist()]


def _type(column: pd.Series) -> str:
    if pd.api.types.is_datetime64_any_dtype(column):
        return "T"
    is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    return "Q" if is_number else "N"


def _tip(name: str, column: pd.Series, title: str) -> Spec:
    kind = _type(column)
    return time_tip(name, title) if kind == "T" else field(f"{name}:{kind}", title=title)
