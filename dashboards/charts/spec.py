"""Parts of a Vega-Lite chart as plain dicts.

Altair would take 20 to 30 ms of a processor for each chart of a page, most of it for copies of its own
objects, and a frame that goes beside it 5 ms more. A chart that is a dict, with its rows inside, takes one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from dashboards.charts.times import AXIS
from dashboards.shell.clock import Clock

Spec = dict[str, Any]

_TYPES = {"Q": "quantitative", "N": "nominal", "T": "temporal"}


def rows(values: Iterable[Spec]) -> Spec:
    """The rows of a layer or view, its `data`. At a chart's top Streamlit would make a frame of them."""
    return {"values": list(values)}


def field(name: str, **more: Any) -> Spec:
    """A channel of a column, written as Altair does: `share:Q` is a quantity, `:N` a name, `:T` a time."""
    column, _, kind = name.rpartition(":")
    return {"field": column, "type": _TYPES[kind], **more}


def time(name: str, title: str) -> Spec:
    """The horizontal axis of a column of `wall_texts`."""
    return field(f"{name}:T", title=title, axis=AXIS)


def time_tip(name: str, title: str) -> Spec:
    """The same on hover."""
    return field(f"{name}:T", title=title, format="%Y-%m-%d %H:%M:%S")


def scale(names: dict[str, Any], **more: Any) -> Spec:
    """What is drawn for each name, such as its colour."""
    return {"domain": list(names), "range": list(names.values()), **more}


def wall_texts(clock: Clock, times: pd.Series | Iterable[datetime]) -> list[str]:
    """Aware times as a browser reads them to show the wall clock there, whatever its own zone is."""
    if not isinstance(times, pd.Series):
        return [clock.wall_text(at) for at in times]
    texts: list[str] = np.datetime_as_string(clock.wall(times).to_numpy("datetime64[ms]")).tolist()
    return texts
