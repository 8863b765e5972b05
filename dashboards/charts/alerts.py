"""An alert's metric by the hour, with when the change came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from dashboards.charts.times import drawn_lines, time_axis
from dashboards.shell.clock import Clock
from dashboards.shell.palette import CANDIDATE, NEUTRAL, REFERENCE, WARN
from dashboards.words import Words

HEIGHT = 300


def around_change(hours: pd.DataFrame, alert: Mapping[str, Any], clock: Clock, say: Words) -> alt.LayerChart:
    """Mean, baseline and tolerance of each hour, a band for the change's 95 % set, a line for the alarm.

    `hours`: hour_at (UTC), pairs, observed, baseline, tolerated.
    """
    drawn = hours.assign(at=clock.wall(hours["hour_at"]))
    change = alert["change_at"] or alert["started_at"]
    ends = clock.wall(pd.Series([change, alert["fired_at"], *hours["hour_at"]]))
    # Room beside the first and last of them, for their names.
    room = max((ends.max() - ends.min()) / 8, pd.Timedelta(minutes=20))
    domain = [at.isoformat() for at in (ends.min() - room, ends.max() + room)]
    title = say("alerts.axis_time", zone=clock.name)
    x = alt.X("at:T", title=title, scale=alt.Scale(domain=domain), axis=time_axis())
    names = drawn_lines(
        hours, {name: say(f"alerts.legend_{name}") for name in ("observed", "tolerated", "baseline")}
    )
    looks = {"observed": (CANDIDATE, [1, 0]), "tolerated": (WARN, [6, 3]), "baseline": (NEUTRAL, [2, 2])}
    long = drawn.rename(columns=names).melt(["at", "pairs"], list(names.values()), "line", "value")
    base = alt.Chart(long).encode(
        x=x,
        y=alt.Y("value:Q", title=say("alerts.axis_observed"), scale=alt.Scale(zero=False)),
        color=alt.Color(
            "line:N",
            scale=alt.Scale(domain=list(names.values()), range=[looks[name][0] for name in names]),
            legend=alt.Legend(orient="top", title=None),
        ),
        strokeDash=alt.StrokeDash(
            "line:N",
            scale=alt.Scale(domain=list(names.values()), range=[looks[name][1] for name in names]),
            legend=None,
        ),
        tooltip=[
            alt.Tooltip("at:T", title=title, format="%Y-%m-%d %H:%M"),
            alt.Tooltip("line:N", title=" "),
            alt.Tooltip("value:Q", title=say("alerts.axis_observed"), format=".4g"),
            alt.Tooltip("pairs:Q", title=say("alerts.pairs")),
        ],
    )
    layers: list[alt.Chart | alt.LayerChart] = [base.mark_line(point=True)]
    first, last = alert["change_earliest_at"], alert["change_latest_at"]
    if first is not None and last is not None:
        band = _times(clock, [first], [last], say("alerts.legend_change"))
        layers.insert(0, _band(band))
    layers.append(_rule(_times(clock, [change], None, say("alerts.legend_began")), REFERENCE))
    layers.append(_rule(_times(clock, [alert["fired_at"]], None, say("alerts.legend_fired")), NEUTRAL))
    chart: alt.LayerChart = alt.layer(*layers, height=HEIGHT)  # type: ignore[assignment]
    return chart


def _times(clock: Clock, starts: list[Any], ends: list[Any] | None, words: str) -> pd.DataFrame:
    frame = pd.DataFrame({"at": clock.wall(pd.Series(starts)), "what": words})
    return frame if ends is None else frame.assign(end=clock.wall(pd.Series(ends)))


def _band(times: pd.DataFrame) -> alt.Chart:
    chart: alt.Chart = (
        alt.Chart(times)
        .mark_rect(color=REFERENCE, opacity=0.15)
        .encode(x=alt.X("at:T"), x2=alt.X2("end:T"), tooltip=alt.Tooltip("what:N", title=" "))
    )
    return chart


def _rule(times: pd.DataFrame, colour: str) -> alt.LayerChart:
    line = (
        alt.Chart(times)
        .mark_rule(color=colour, strokeWidth=2)
        .encode(x=alt.X("at:T"), tooltip=alt.Tooltip("what:N"))
    )
    text = (
        alt.Chart(times)
        .mark_text(align="left", baseline="top", dx=4, color=colour)
        .encode(x=alt.X("at:T"), y=alt.YValue(2 if colour == REFERENCE else 16), text=alt.Text("what:N"))  # type: ignore[no-untyped-call]
    )
    chart: alt.LayerChart = line + text
    return chart
