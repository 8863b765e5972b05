"""Charts of one detector: its hours, and how its values are distributed before and now."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dashboards.charts.times import drawn_lines, time_axis
from dashboards.shell.clock import Clock
from dashboards.shell.palette import CANDIDATE, NEUTRAL, REFERENCE, WARN
from dashboards.words import Words

HEIGHT = 280
BINS = 40
MOST_BARS = 3
"""So few different values are drawn a bar each: flags, and faults on one side."""
MOST_POINTS = 300
"""Points of one curve: a browser draws no more of them than that."""

Floats = NDArray[np.float64]


def by_hour(hours: pd.DataFrame, clock: Clock, say: Words) -> alt.Chart:
    """Mean of each hour beside what is tolerated and the baseline. `hours`: of `questions.drift`."""
    names = drawn_lines(hours, {name: say(f"drift.{name}") for name in ("observed", "tolerated", "baseline")})
    looks = {"observed": (CANDIDATE, [1, 0]), "tolerated": (WARN, [6, 3]), "baseline": (NEUTRAL, [2, 2])}
    drawn = hours.assign(at=clock.wall(hours["hour_at"])).rename(columns=names)
    long = drawn.melt(["at", "pairs"], list(names.values()), "line", "value")
    chart: alt.Chart = (
        alt.Chart(long)
        .mark_line(point=True)
        .encode(
            x=alt.X("at:T", title=say("drift.axis_time", zone=clock.name), axis=time_axis()),
            y=alt.Y("value:Q", title=say("drift.axis_mean"), scale=alt.Scale(zero=False)),
            color=_colour("line", list(names.values()), [looks[name][0] for name in names]),
            strokeDash=_dash("line", list(names.values()), [looks[name][1] for name in names]),
            tooltip=[
                alt.Tooltip("at:T", title=say("drift.axis_time", zone=clock.name), format="%Y-%m-%d %H:%M"),
                alt.Tooltip("line:N", title=" "),
                alt.Tooltip("value:Q", title=say("drift.axis_mean"), format=".4g"),
                alt.Tooltip("pairs:Q", title=say("drift.pairs")),
            ],
        )
        .properties(height=HEIGHT)
    )
    return chart


def evidence_by_hour(hours: pd.DataFrame, clock: Clock, say: Words) -> alt.LayerChart:
    """S over A M at the end of each hour on a logarithmic scale, with the lines of pending and alarm."""
    drawn = hours.assign(
        at=clock.wall(hours["hour_at"]),
        share=(hours["statistic"] / hours["threshold"]).clip(lower=1e-9),
    )
    lines = pd.DataFrame({"share": [1.0, 0.01], "what": [say("drift.alarm"), say("drift.pending")]})
    curve = (
        alt.Chart(drawn)
        .mark_line(point=True, color=CANDIDATE)
        .encode(
            x=alt.X("at:T", title=say("drift.axis_time", zone=clock.name), axis=time_axis()),
            y=alt.Y(
                "share:Q",
                title=say("drift.axis_evidence"),
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~e", values=[10.0**power for power in range(-9, 1)]),
            ),
            tooltip=[
                alt.Tooltip("at:T", title=say("drift.axis_time", zone=clock.name), format="%Y-%m-%d %H:%M"),
                alt.Tooltip("share:Q", title=say("drift.axis_evidence"), format=".3g"),
                alt.Tooltip("pairs:Q", title=say("drift.pairs")),
            ],
        )
    )
    rules = (
        alt.Chart(lines)
        .mark_rule(strokeDash=[6, 3], color=WARN, strokeWidth=2)
        .encode(y=alt.Y("share:Q"), tooltip=alt.Tooltip("what:N"))
    )
    names = (
        alt.Chart(lines)
        .mark_text(align="left", baseline="bottom", dx=4, dy=-2, color=WARN)
        .encode(y=alt.Y("share:Q"), x=alt.XValue(0), text=alt.Text("what:N"))  # type: ignore[no-untyped-call]
    )
    chart: alt.LayerChart = alt.layer(curve, rules, names, height=HEIGHT)  # type: ignore[assignment]
    return chart


def distribution(
    before: Floats, now: Floats, names: list[str], say: Words, title: str, *, is_ratio: bool
) -> alt.Chart:
    """Both samples' share of pairs, neither empty: by value where there are few of them, else by interval.

    `is_ratio` draws factors on a logarithmic scale. The outermost 0.5 % go into the last intervals.
    """
    if is_by_value(before, now):
        return _by_value(before, now, names, say, title)
    edges = _edges(before, now, is_ratio)
    rows = []
    for name, sample in zip(names, (before, now), strict=True):
        counts, _ = np.histogram(np.clip(sample, edges[0], edges[-1]), edges)
        rows += [
            {"from": left, "to": right, "share": count / len(sample), "sample": name, "pairs": int(count)}
            for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
    chart: alt.Chart = (
        alt.Chart(pd.DataFrame(rows))
        .mark_bar(opacity=0.55, binSpacing=0)
        .encode(
            x=alt.X("from:Q", bin="binned", title=title, scale=_scale(is_ratio, edges)),
            x2=alt.X2("to:Q"),
            y=alt.Y("share:Q", title=say("drift.axis_share"), stack=None, axis=alt.Axis(format="%")),
            color=_colour("sample", names, [REFERENCE, CANDIDATE]),
            tooltip=[
                alt.Tooltip("sample:N"),
                alt.Tooltip("from:Q", format=".4g"),
                alt.Tooltip("to:Q", format=".4g"),
                alt.Tooltip("share:Q", format=".2%"),
                alt.Tooltip("pairs:Q", title=say("drift.pairs")),
            ],
        )
        .properties(height=HEIGHT)
    )
    return chart


def is_by_value(before: Floats, now: Floats) -> bool:
    """Whether a bar a value shows the whole distribution."""
    return len(np.unique(np.concatenate([before, now]))) <= MOST_BARS


def _by_value(before: Floats, now: Floats, names: list[str], say: Words, title: str) -> alt.Chart:
    values = np.unique(np.concatenate([before, now]))
    rows = [
        {
            "value": f"{value:g}",
            "sample": name,
            "share": float((sample == value).mean()),
            "pairs": int((sample == value).sum()),
        }
        for name, sample in zip(names, (before, now), strict=True)
        for value in values
    ]
    chart: alt.Chart = (
        alt.Chart(pd.DataFrame(rows))
        .mark_bar()
        .encode(
            x=alt.X("value:N", title=title, axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("sample:N", sort=names),
            y=alt.Y("share:Q", title=say("drift.axis_share"), axis=alt.Axis(format="%")),
            color=_colour("sample", names, [REFERENCE, CANDIDATE]),
            tooltip=[
                alt.Tooltip("sample:N"),
                alt.Tooltip("value:N", title=title),
                alt.Tooltip("share:Q", format=".2%"),
                alt.Tooltip("pairs:Q", title=say("drift.pairs")),
            ],
        )
        .properties(height=HEIGHT)
    )
    return chart


def ecdf(
    before: Floats, now: Floats, names: list[str], say: Words, title: str, *, is_ratio: bool
) -> alt.Chart:
    """Empirical distribution functions of both samples, neither empty, thinned to MOST_POINTS steps."""
    rows = []
    for name, sample in zip(names, (before, now), strict=True):
        ranked = np.sort(sample)
        places = np.linspace(0, len(ranked) - 1, min(len(ranked), MOST_POINTS)).astype(np.int64)
        rows += [
            {"value": float(ranked[place]), "share": (int(place) + 1) / len(ranked), "sample": name}
            for place in np.unique(places)
        ]
    chart: alt.Chart = (
        alt.Chart(pd.DataFrame(rows))
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("value:Q", title=title, scale=_scale(is_ratio, None)),
            y=alt.Y("share:Q", title=say("drift.axis_at_most"), axis=alt.Axis(format="%")),
            color=_colour("sample", names, [REFERENCE, CANDIDATE]),
            strokeDash=_dash("sample", names, [[5, 3], [1, 0]]),
            tooltip=[
                alt.Tooltip("sample:N"),
                alt.Tooltip("value:Q", format=".4g"),
                alt.Tooltip("share:Q", format=".2%"),
            ],
        )
        .properties(height=HEIGHT)
    )
    return chart


def excess(slices: pd.DataFrame, say: Words, title: str) -> alt.LayerChart:
    """Excess over the floor with its interval, a row a slice, the largest first.

    `slices`: slice (visible), excess, low, high, requests.
    """
    order = list(slices["slice"])
    y = alt.Y("slice:N", sort=order, title=None, axis=alt.Axis(labelLimit=260))
    base = alt.Chart(slices).encode(
        y=y,
        tooltip=[
            alt.Tooltip("slice:N"),
            alt.Tooltip("excess:Q", title=say("drift.excess"), format="+.4g"),
            alt.Tooltip("low:Q", format="+.4g"),
            alt.Tooltip("high:Q", format="+.4g"),
            alt.Tooltip("requests:Q", title="n"),
        ],
    )
    # The reader's own eye tells what is over the floor: the interval is right of 0.
    spread = base.mark_rule(strokeWidth=3, color=REFERENCE).encode(
        x=alt.X("low:Q", title=title), x2=alt.X2("high:Q")
    )
    dots = base.mark_point(filled=True, size=90, color=CANDIDATE, shape="diamond").encode(x=alt.X("excess:Q"))
    zero = (
        alt.Chart(pd.DataFrame({"x": [0.0]}))
        .mark_rule(color=NEUTRAL, strokeDash=[4, 3])
        .encode(x=alt.X("x:Q"))
    )
    chart: alt.LayerChart = alt.layer(
        zero,
        spread,
        dots,  # type: ignore[assignment]
        height=28 * len(order) + 60,
    )
    return chart


def _edges(before: Floats, now: Floats, is_ratio: bool) -> Floats:
    both = np.concatenate([before, now])
    low, high = np.quantile(both, [0.005, 0.995])
    if low == high:
        low, high = both.min(), both.max()
    if is_ratio:
        return np.asarray(np.geomspace(low, high, BINS + 1), dtype=np.float64)
    return np.linspace(low, high, BINS + 1)


def _scale(is_ratio: bool, edges: Floats | None) -> alt.Scale:
    domain = alt.Undefined if edges is None else [float(edges[0]), float(edges[-1])]
    return alt.Scale(type="log", domain=domain) if is_ratio else alt.Scale(zero=False, domain=domain)


def _colour(field: str, names: list[str], colours: list[str]) -> alt.Color:
    return alt.Color(
        f"{field}:N",
        scale=alt.Scale(domain=names, range=colours),
        legend=alt.Legend(orient="top", title=None),
    )


def _dash(field: str, names: list[str], dashes: list[list[int]]) -> alt.StrokeDash:
    return alt.StrokeDash(f"{field}:N", scale=alt.Scale(domain=names, range=dashes), legend=None)
