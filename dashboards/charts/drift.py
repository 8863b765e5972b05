"""Charts of one detector: its hours, and how its values are distributed before and now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dashboards.charts.hours import cell, mean_lines
from dashboards.charts.spec import Spec, field, rows, time, wall_texts
from dashboards.shell.clock import Clock
from dashboards.shell.palette import CANDIDATE, NEUTRAL, REFERENCE, WARN
from dashboards.words import Words

HEIGHT = 280
BINS = 40
MOST_BARS = 3
"""So few different values are drawn a bar each: flags, and faults on one side."""
MOST_POINTS = 150
"""Points of one curve: a step is two of a chart's pixels high then."""

Floats = NDArray[np.float64]
Hours = Sequence[Mapping[str, Any]]


def by_hour(hours: Hours, clock: Clock, say: Words) -> Spec:
    """Mean of each hour beside what is tolerated and the baseline. `hours`: of `questions.drift`."""
    lines = mean_lines(
        hours,
        clock,
        {name: say(f"drift.{name}") for name in ("observed", "tolerated", "baseline")},
        time=say("drift.axis_time", zone=clock.name),
        mean=say("drift.axis_mean"),
        pairs=say("drift.pairs"),
    )
    return {"layer": [lines], "height": HEIGHT}


def evidence_by_hour(hours: Hours, clock: Clock, say: Words) -> Spec:
    """S over A M at the end of each hour on a logarithmic scale, with the lines of pending and alarm."""
    at = wall_texts(clock, [hour["hour_at"] for hour in hours])
    title = say("drift.axis_time", zone=clock.name)
    curve = {
        "data": rows(
            {"at": text, "share": _share(hour), "pairs": cell(hour["pairs"])}
            for text, hour in zip(at, hours, strict=True)
        ),
        "mark": {"type": "line", "point": True, "color": CANDIDATE},
        "encoding": {
            "x": time("at", title),
            "y": field(
                "share:Q",
                title=say("drift.axis_evidence"),
                scale={"type": "log"},
                axis={"format": "~e", "values": [10.0**power for power in range(-9, 1)]},
            ),
            "tooltip": [
                field("at:T", title=title, format="%Y-%m-%d %H:%M"),
                field("share:Q", title=say("drift.axis_evidence"), format=".3g"),
                field("pairs:Q", title=say("drift.pairs")),
            ],
        },
    }
    name = {"type": "text", "align": "left", "baseline": "bottom", "dx": 4, "dy": -2, "color": WARN}
    lines = {
        "data": rows(
            [{"share": 1.0, "what": say("drift.alarm")}, {"share": 0.01, "what": say("drift.pending")}]
        ),
        "encoding": {"y": field("share:Q")},
        "layer": [
            {
                "mark": {"type": "rule", "strokeDash": [6, 3], "color": WARN, "strokeWidth": 2},
                "encoding": {"tooltip": field("what:N")},
            },
            {"mark": name, "encoding": {"x": {"value": 0}, "text": field("what:N")}},
        ],
    }
    return {"layer": [curve, lines], "height": HEIGHT}


def distribution(
    before: Floats, now: Floats, names: list[str], say: Words, title: str, *, is_ratio: bool
) -> Spec:
    """Both samples' share of pairs, neither empty: by value where there are few of them, else by interval.

    `is_ratio` draws factors on a logarithmic scale. The outermost 0.5 % go into the last intervals.
    """
    if is_by_value(before, now):
        return _by_value(before, now, names, say, title)
    edges = _edges(before, now, is_ratio)
    drawn = []
    for name, sample in zip(names, (before, now), strict=True):
        counts, _ = np.histogram(np.clip(sample, edges[0], edges[-1]), edges)
        drawn += [
            {"from": left, "to": right, "share": count / len(sample), "sample": name, "pairs": count}
            for left, right, count in zip(
                edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True
            )
        ]
    bars = {
        "data": rows(drawn),
        "mark": {"type": "bar", "opacity": 0.55, "binSpacing": 0},
        "encoding": {
            "x": field("from:Q", bin="binned", title=title, scale=_scale(is_ratio, edges)),
            "x2": {"field": "to"},
            "y": field("share:Q", title=say("drift.axis_share"), stack=None, axis={"format": "%"}),
            "color": _colour(names),
            "tooltip": [
                field("sample:N"),
                field("from:Q", format=".4g"),
                field("to:Q", format=".4g"),
                field("share:Q", format=".2%"),
                field("pairs:Q", title=say("drift.pairs")),
            ],
        },
    }
    return {"layer": [bars], "height": HEIGHT}


def is_by_value(before: Floats, now: Floats) -> bool:
    """Whether a bar a value shows the whole distribution."""
    return len(np.unique(np.concatenate([before, now]))) <= MOST_BARS


def _by_value(before: Floats, now: Floats, names: list[str], say: Words, title: str) -> Spec:
    values = np.unique(np.concatenate([before, now]))
    bars = {
        "data": rows(
            {
                "value": f"{value:g}",
                "sample": name,
                "share": float((sample == value).mean()),
                "pairs": int((sample == value).sum()),
            }
            for name, sample in zip(names, (before, now), strict=True)
            for value in values
        ),
        "mark": {"type": "bar"},
        "encoding": {
            "x": field("value:N", title=title, axis={"labelAngle": 0}),
            "xOffset": field("sample:N", sort=names),
            "y": field("share:Q", title=say("drift.axis_share"), axis={"format": "%"}),
            "color": _colour(names),
            "tooltip": [
                field("sample:N"),
                field("value:N", title=title),
                field("share:Q", format=".2%"),
                field("pairs:Q", title=say("drift.pairs")),
            ],
        },
    }
    return {"layer": [bars], "height": HEIGHT}


def ecdf(before: Floats, now: Floats, names: list[str], say: Words, title: str, *, is_ratio: bool) -> Spec:
    """Empirical distribution functions of both samples, neither empty, thinned to MOST_POINTS steps."""
    drawn = []
    for name, sample in zip(names, (before, now), strict=True):
        ranked = np.sort(sample)
        places = np.unique(np.linspace(0, len(ranked) - 1, min(len(ranked), MOST_POINTS)).astype(np.int64))
        drawn += [
            {"value": float(f"{value:.6g}"), "share": round((place + 1) / len(ranked), 5), "sample": name}
            for place, value in zip(places.tolist(), ranked[places].tolist(), strict=True)
        ]
    lines = {
        "data": rows(drawn),
        "mark": {"type": "line", "interpolate": "step-after"},
        "encoding": {
            "x": field("value:Q", title=title, scale=_scale(is_ratio, None)),
            "y": field("share:Q", title=say("drift.axis_at_most"), axis={"format": "%"}),
            "color": _colour(names),
            "strokeDash": field("sample:N", scale={"domain": names, "range": [[5, 3], [1, 0]]}, legend=None),
            "tooltip": [
                field("sample:N"),
                field("value:Q", format=".4g"),
                field("share:Q", format=".2%"),
            ],
        },
    }
    return {"layer": [lines], "height": HEIGHT}


def excess(slices: Sequence[Mapping[str, Any]], say: Words, title: str) -> Spec:
    """Excess over the floor with its interval, a row a slice, the largest first.

    `slices`: slice (visible), excess, low, high, requests.
    """
    names = ("slice", "excess", "low", "high", "requests")
    drawn = [{name: cell(row[name]) for name in names} for row in slices]
    order = [row["slice"] for row in drawn]
    # The reader's own eye tells what is over the floor: the interval is right of 0.
    zero = {
        "data": rows([{"x": 0.0}]),
        "mark": {"type": "rule", "color": NEUTRAL, "strokeDash": [4, 3]},
        "encoding": {"x": field("x:Q")},
    }
    both = {
        "data": rows(drawn),
        "encoding": {
            "y": field("slice:N", sort=order, title=None, axis={"labelLimit": 260}),
            "tooltip": [
                field("slice:N"),
                field("excess:Q", title=say("drift.excess"), format="+.4g"),
                field("low:Q", format="+.4g"),
                field("high:Q", format="+.4g"),
                field("requests:Q", title="n"),
            ],
        },
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 3, "color": REFERENCE},
                "encoding": {"x": field("low:Q", title=title), "x2": {"field": "high"}},
            },
            {
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 90,
                    "color": CANDIDATE,
                    "shape": "diamond",
                },
                "encoding": {"x": field("excess:Q")},
            },
        ],
    }
    return {"layer": [zero, both], "height": 28 * len(order) + 60}


def _share(hour: Mapping[str, Any]) -> float | None:
    """S over A M, None before there is a threshold; no less than a logarithmic axis shows."""
    statistic, threshold = cell(hour["statistic"]), cell(hour["threshold"])
    return None if statistic is None or not threshold else max(statistic / threshold, 1e-9)


def _edges(before: Floats, now: Floats, is_ratio: bool) -> Floats:
    both = np.concatenate([before, now])
    low, high = np.quantile(both, [0.005, 0.995])
    if low == high:
        low, high = both.min(), both.max()
    if is_ratio:
        return np.asarray(np.geomspace(low, high, BINS + 1), dtype=np.float64)
    return np.linspace(low, high, BINS + 1)


def _scale(is_ratio: bool, edges: Floats | None) -> Spec:
    made: Spec = {"type": "log"} if is_ratio else {"zero": False}
    return made if edges is None else {**made, "domain": [float(edges[0]), float(edges[-1])]}


def _colour(names: list[str]) -> Spec:
    """The baseline's and the current sample's."""
    colours = {"domain": names, "range": [REFERENCE, CANDIDATE]}
    return field("sample:N", scale=colours, legend={"orient": "top", "title": " "})
