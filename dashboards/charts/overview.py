"""Charts of the overview: the bounds beside the margin, verdicts, faults, and figures over time."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from dashboards.charts.times import time_axis
from dashboards.shell.clock import Clock
from dashboards.shell.palette import CANDIDATE, GOOD, NEUTRAL, PURPLE, REFERENCE, VERDICTS
from dashboards.words import Words

HEIGHT = 210
ROW_PX = 26
LEAST_LABELLED = 0.06
"""A share of the verdict bar that is narrower has no room for its count."""

DARK = frozenset(
    {"candidate_worse", "candidate_error", "reference_worse", "reference_error", "both_error", "match"}
)
"""Verdicts whose colour is read better with white on it."""

_SIDES = {
    "over": (CANDIDATE, "triangle-right"),
    "under": (GOOD, "circle"),
    "across": (NEUTRAL, "square"),
}
"""Beside the margin: the colour and the shape."""


def bounds(rows: pd.DataFrame, margin: float, say: Words) -> alt.LayerChart:
    """Each slice's interval as a bar with its excess as a point, the margin as a dashed line.

    `rows`: slice, excess, low, high, pairs, side (`over`, `under` or `across` the margin); the whole first.
    """
    seen = [0.0, margin, rows["low"].iloc[0], rows["high"].iloc[0], *rows["excess"]]
    # The whole and the rates seen set the scale: one slice of three pairs would flatten the rest.
    pad = max(0.15 * (max(seen) - min(seen)), 1e-6)
    left, right = max(min(seen) - pad, -1.0), min(max(seen) + pad, 1.0)
    signs = {
        side: (say(f"overview.chart_{side}"), *sign)
        for side, sign in _SIDES.items()
        if side in set(rows["side"])
    }
    names = {side: sign[0] for side, sign in signs.items()}
    drawn = rows.assign(
        side=rows["side"].map(names),
        left=rows["low"].clip(left, right),
        right=rows["high"].clip(left, right),
        at=rows["excess"].clip(left, right),
    )
    scale = alt.Scale(domain=list(names.values()), range=[colour for _, colour, _ in signs.values()])
    side = say("overview.chart_side")
    base = alt.Chart(drawn).encode(
        y=alt.Y(
            "slice:N", sort=list(rows["slice"]), title=None, axis=alt.Axis(labelLimit=160, labelOverlap=False)
        ),
        color=alt.Color("side:N", scale=scale, legend=alt.Legend(orient="bottom", title=side)),
        tooltip=[
            alt.Tooltip("slice:N", title=say("overview.chart_slice")),
            alt.Tooltip("excess:Q", title=say("overview.chart_excess"), format="+.3%"),
            alt.Tooltip("low:Q", title=say("overview.chart_low"), format="+.3%"),
            alt.Tooltip("high:Q", title=say("overview.chart_high"), format="+.3%"),
            alt.Tooltip("side:N", title=side),
            alt.Tooltip("pairs:Q", title=say("overview.chart_pairs"), format=","),
        ],
    )
    x = alt.X(
        "left:Q",
        title=say("overview.chart_bounds"),
        scale=alt.Scale(domain=[left, right], nice=False),
        axis=alt.Axis(format=".2~%"),
    )
    bars = base.mark_bar(height=6, opacity=0.8).encode(x=x, x2=alt.X2("right:Q"))
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("at:Q"),
        shape=alt.Shape(
            "side:N",
            scale=alt.Scale(domain=list(names.values()), range=[shape for *_, shape in signs.values()]),
            legend=None,
        ),
    )
    lines = pd.DataFrame({"at": [margin], "what": [f"{say('overview.chart_margin')} {100 * margin:g} %"]})
    zero = (
        alt.Chart(pd.DataFrame({"at": [0.0]})).mark_rule(color=NEUTRAL, opacity=0.6).encode(x=alt.X("at:Q"))
    )
    rule = (
        alt.Chart(lines)
        .mark_rule(color=PURPLE, strokeDash=[5, 4], strokeWidth=2)
        .encode(x=alt.X("at:Q"), tooltip=alt.Tooltip("what:N", title=" "))
    )
    name = (
        alt.Chart(lines)
        .mark_text(color=PURPLE, align="left", dx=4, dy=-4, baseline="bottom")
        .encode(x=alt.X("at:Q"), y=alt.YValue(0), text=alt.Text("what:N"))  # type: ignore[no-untyped-call]
    )
    chart: alt.LayerChart = alt.layer(
        zero,
        bars,
        dots,
        rule,
        name,  # type: ignore[assignment]
        height=ROW_PX * len(rows) + 130,
    )
    return chart


def verdict_bar(counts: pd.DataFrame, say: Words) -> alt.LayerChart:
    """One bar, a stretch a verdict, in the order of the palette. `counts`: verdict, pairs."""
    order = [name for name in VERDICTS if name in set(counts["verdict"])]
    drawn = counts.assign(
        place=counts["verdict"].map(order.index),
        share=counts["pairs"] / counts["pairs"].sum(),
        one="",
    ).sort_values("place")
    drawn["label"] = [
        f"{pairs:,}" if share >= LEAST_LABELLED else ""
        for pairs, share in zip(drawn["pairs"], drawn["share"], strict=True)
    ]
    drawn["ink"] = ["white" if name in DARK else "black" for name in drawn["verdict"]]
    drawn["middle"] = drawn["share"].cumsum() - drawn["share"] / 2
    scale = alt.Scale(domain=order, range=[VERDICTS[name] for name in order])
    bar = (
        alt.Chart(drawn)
        .mark_bar(height=34, stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("share:Q", title=None, axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("one:N", title=None, axis=None),
            order=alt.Order("place:Q"),
            color=alt.Color(
                "verdict:N",
                scale=scale,
                sort=order,
                legend=alt.Legend(orient="bottom", title=None, columns=3),
            ),
            tooltip=[
                alt.Tooltip("verdict:N", title=say("overview.verdicts")),
                alt.Tooltip("pairs:Q", title=say("overview.chart_pairs"), format=","),
                alt.Tooltip("share:Q", title="%", format=".2%"),
            ],
        )
    )
    text = (
        alt.Chart(drawn)
        .mark_text(fontWeight="bold")
        .encode(
            x=alt.X("middle:Q"),
            y=alt.Y("one:N", axis=None),
            text=alt.Text("label:N"),
            color=alt.Color("ink:N", scale=None, legend=None),
        )
    )
    chart: alt.LayerChart = alt.layer(bar, text, height=80 + 24 * -(-len(order) // 3))  # type: ignore[assignment]
    return chart


def fault_bar(counts: pd.DataFrame, say: Words) -> alt.Chart:
    """Faults on one side only, by family. `counts`: family, side, pairs."""
    colours = {"candidate only": CANDIDATE, "reference only": REFERENCE}
    colours = {side: colour for side, colour in colours.items() if side in set(counts["side"])}
    names = {side: say(f"overview.side_{side}") for side in colours}
    chart: alt.Chart = (
        alt.Chart(counts.assign(side=counts["side"].map(names)))
        .mark_bar()
        .encode(
            x=alt.X("pairs:Q", title=say("overview.chart_pairs"), axis=alt.Axis(tickMinStep=1)),
            y=alt.Y("family:N", title=None),
            yOffset=alt.YOffset("side:N", sort=list(names.values())),
            color=alt.Color(
                "side:N",
                scale=alt.Scale(domain=list(names.values()), range=list(colours.values())),
                legend=alt.Legend(orient="bottom", title=None),
            ),
            tooltip=[
                alt.Tooltip("family:N", title=say("overview.family")),
                alt.Tooltip("side:N", title=say("overview.side")),
                alt.Tooltip("pairs:Q", title=say("overview.chart_pairs"), format=","),
            ],
        )
        .properties(height=34 * counts["family"].nunique() + 70)
    )
    return chart


def over_time(
    steps: pd.DataFrame,
    lines: Sequence[tuple[str, str, str, str]],
    title: str,
    marks: pd.DataFrame,
    clock: Clock,
    say: Words,
    form: str = ".4f",
) -> alt.LayerChart:
    """Figures of both sides or kinds over time, with a dashed line where what served changed.

    `steps`: at (UTC), and for each of `lines` (column, column of its n, name, colour) its columns; a step
    without a value is left out. `marks`: at (UTC), what. `form` is d3's, of the values.
    """
    at = clock.wall(steps["at"])
    long = pd.concat(
        pd.DataFrame({"at": at, "value": steps[column].astype(float), "n": steps[count], "line": name})
        for column, count, name, _ in lines
    ).dropna(subset=["value"])
    drawn = set(long["line"])
    lines = [one for one in lines if one[2] in drawn]
    names = [name for _, _, name, _ in lines]
    legend = alt.Legend(orient="top", title=None, symbolStrokeWidth=0) if len(lines) > 1 else None
    time = say("overview.axis_time", zone=clock.name)
    one = alt.Chart(long).encode(
        x=alt.X("at:T", title=time, axis=time_axis()),
        y=alt.Y(
            "value:Q",
            title=title,
            scale=alt.Scale(zero=True),
            axis=alt.Axis(format="~%" if "%" in form else ",~f" if "," in form else "~g"),
        ),
        color=alt.Color(
            "line:N",
            scale=alt.Scale(domain=names, range=[colour for *_, colour in lines]),
            legend=legend,
        ),
        tooltip=[
            alt.Tooltip("at:T", title=time, format="%Y-%m-%d %H:%M:%S"),
            alt.Tooltip("line:N", title=say("overview.tip_line")),
            alt.Tooltip("value:Q", title=say("overview.tip_value"), format=form),
            alt.Tooltip("n:Q", title=say("overview.tip_pairs"), format=","),
        ],
    )
    layers: list[alt.Chart | alt.LayerChart] = [
        one.mark_line().encode(
            strokeDash=alt.StrokeDash(
                "line:N", scale=alt.Scale(domain=names, range=[[1, 0], [6, 3]]), legend=None
            )
        ),
        one.mark_point(filled=True, size=40, opacity=1).encode(
            shape=alt.Shape(
                "line:N", scale=alt.Scale(domain=names, range=["circle", "triangle-up"]), legend=legend
            )
        ),
    ]
    if not marks.empty:
        layers += _marks(marks.assign(at=clock.wall(marks["at"])), time, say)
    chart: alt.LayerChart = alt.layer(*layers, height=HEIGHT)  # type: ignore[assignment]
    return chart


def _marks(marks: pd.DataFrame, time: str, say: Words) -> list[alt.Chart]:
    base = alt.Chart(marks).encode(
        x=alt.X("at:T"),
        tooltip=[
            alt.Tooltip("at:T", title=time, format="%Y-%m-%d %H:%M:%S"),
            alt.Tooltip("what:N", title=say("overview.marks")),
        ],
    )
    rule = base.mark_rule(color=PURPLE, strokeDash=[4, 3], strokeWidth=2)
    # Something wider to point at than the line.
    sign = base.mark_point(shape="diamond", filled=True, size=110, color=PURPLE, opacity=1).encode(
        y=alt.YValue(6)  # type: ignore[no-untyped-call]
    )
    return [rule, sign]
