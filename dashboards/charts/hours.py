"""The mean of a detector's hours beside what is tolerated and the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dashboards.charts.spec import Spec, field, rows, scale, wall_texts
from dashboards.charts.spec import time as time_axis
from dashboards.shell.clock import Clock
from dashboards.shell.palette import CANDIDATE, NEUTRAL, WARN

_LOOKS = {"observed": (CANDIDATE, [1, 0]), "tolerated": (WARN, [6, 3]), "baseline": (NEUTRAL, [2, 2])}


def cells(column: pd.Series) -> list[Any]:
    """The values, None where there is none: a browser cannot read NaN."""
    return [cell(value) for value in column.tolist()]


def cell(value: Any) -> Any:
    """One of them."""
    return None if value is None or value != value else value


def mean_lines(
    hours: Sequence[Mapping[str, Any]],
    clock: Clock,
    names: dict[str, str],
    *,
    time: str,
    mean: str,
    pairs: str,
) -> Spec:
    """A line for each of `observed`, `tolerated` and `baseline` that has a value, the first always; a
    point an hour.

    `hours`: hour_at (UTC), pairs and these columns; `names` are theirs in the legend, the other words the
    axes' titles.
    """
    first = next(iter(names))
    shown = {
        column: name
        for column, name in names.items()
        if column == first or any(cell(hour[column]) is not None for hour in hours)
    }
    at = wall_texts(clock, [hour["hour_at"] for hour in hours])
    long = [
        {"at": text, "pairs": cell(hour["pairs"]), "line": name, "value": cell(hour[column])}
        for column, name in shown.items()
        for text, hour in zip(at, hours, strict=True)
    ]
    colours = scale({name: _LOOKS[column][0] for column, name in shown.items()})
    dashes = scale({name: _LOOKS[column][1] for column, name in shown.items()})
    return {
        "data": rows(long),
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": time_axis("at", time),
            "y": field("value:Q", title=mean, scale={"zero": False}),
            "color": field("line:N", scale=colours, legend={"orient": "top", "title": " "}),
            "strokeDash": field("line:N", scale=dashes, legend=None),
            "tooltip": [
                field("at:T", title=time, format="%Y-%m-%d %H:%M"),
                field("line:N", title=" "),
                field("value:Q", title=mean, format=".4g"),
                field("pairs:Q", title=pairs),
            ],
        },
    }
