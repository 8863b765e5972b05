"""Charts of the operations page: records by outcome, lag, tokens by day."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboards.charts.times import time_axis
from dashboards.questions.operations import KINDS
from dashboards.shell.clock import Clock
from dashboards.shell.palette import CANDIDATE, GOOD, NEUTRAL, PURPLE, REFERENCE, SKY, WARN
from dashboards.words import Words

HEIGHT = 260

_COLOURS = {"compared": GOOD, "skipped": NEUTRAL, "failed": WARN, "dead_letter": CANDIDATE}


def throughput(records: pd.DataFrame, step: int, clock: Clock, say: Words) -> alt.Chart:
    """Records a minute, stacked by outcome. `records`: at (UTC), kind, records; a step is `step` minutes."""
    names = {kind: say(f"operations.kind_{kind}") for kind in KINDS}
    drawn = records.groupby(["at", "kind"], as_index=False).agg(records=("records", "sum"))
    drawn = drawn.assign(place=drawn["kind"].map(KINDS.index)).sort_values(["at", "place"])
    top = drawn.groupby("at")["records"].cumsum() / step
    # Stacked here: a bar from one time to another is not stacked by the library.
    drawn = drawn.assign(
        bottom=top - drawn["records"] / step,
        top=top,
        begin=clock.wall(drawn["at"]),
        end=clock.wall(drawn["at"] + pd.Timedelta(minutes=step)),
        outcome=drawn["kind"].map(names),
        rate=drawn["records"] / step,
    )
    time = say("operations.axis_time", zone=clock.name)
    chart: alt.Chart = (
        alt.Chart(drawn.drop(columns=["at"]))
        .mark_rect()
        .encode(
            x=alt.X("begin:T", title=time, axis=time_axis()),
            x2=alt.X2("end:T"),
            y=alt.Y("bottom:Q", title=say("operations.axis_rate"), scale=alt.Scale(zero=True)),
            y2=alt.Y2("top:Q"),
            color=alt.Color(
                "outcome:N",
                scale=alt.Scale(domain=list(names.values()), range=[_COLOURS[kind] for kind in KINDS]),
                legend=alt.Legend(orient="top", title=None),
            ),
            tooltip=[
                alt.Tooltip("begin:T", title=time, format="%Y-%m-%d %H:%M"),
                alt.Tooltip("outcome:N", title=say("operations.outcome")),
                alt.Tooltip("rate:Q", title=say("operations.axis_rate"), format=",.3~f"),
                alt.Tooltip("records:Q", title=say("operations.count"), format=","),
            ],
        )
        .properties(height=HEIGHT)
    )
    return chart


def lag(steps: pd.DataFrame, clock: Clock, say: Words) -> alt.Chart:
    """Mean (full line) and longest (dashed) lag of each step.

    `steps`: at (UTC), records, and mean and longest in seconds.
    """
    names = {"mean": say("operations.lag_mean"), "longest": say("operations.lag_max")}
    drawn = steps.assign(at=clock.wall(steps["at"])).rename(columns=names)
    long = drawn.melt(["at", "records"], list(names.values()), "line", "seconds")
    time = say("operations.axis_time", zone=clock.name)
    legend = alt.Legend(orient="top", title=None, symbolType="stroke")
    dashes = alt.Scale(domain=list(names.values()), range=[[1, 0], [6, 3]])
    base = alt.Chart(long).mark_line(point=alt.OverlayMarkDef(size=20))
    chart: alt.Chart = base.encode(
        x=alt.X("at:T", title=time, axis=time_axis()),
        y=alt.Y("seconds:Q", title=say("operations.axis_lag"), scale=alt.Scale(zero=True)),
        color=alt.Color(
            "line:N", scale=alt.Scale(domain=list(names.values()), range=[REFERENCE, PURPLE]), legend=legend
        ),
        tooltip=[
            alt.Tooltip("at:T", title=time, format="%Y-%m-%d %H:%M"),
            alt.Tooltip("line:N", title=say("operations.lag")),
            alt.Tooltip("seconds:Q", title=say("operations.axis_lag"), format=",.1f"),
            alt.Tooltip("records:Q", title=say("operations.count"), format=","),
        ],
        strokeDash=alt.StrokeDash("line:N", scale=dashes, legend=None),
    ).properties(height=HEIGHT)
    return chart


def tokens(use: pd.DataFrame, say: Words) -> alt.Chart:
    """Tokens of each endpoint by UTC day, side by side. `use`: endpoint (visible), day, prompt_tokens,
    completion_tokens, calls.
    """
    drawn = use.assign(day=use["day"].astype(str), total=use["prompt_tokens"] + use["completion_tokens"])
    names = sorted(set(drawn["endpoint"]))
    colours = [SKY, REFERENCE, WARN, PURPLE, GOOD, CANDIDATE]
    chart: alt.Chart = (
        alt.Chart(drawn)
        .mark_bar()
        .encode(
            x=alt.X(
                "day:O", title=say("operations.axis_day"), axis=alt.Axis(labelAngle=0, labelOverlap=True)
            ),
            xOffset=alt.XOffset("endpoint:N", sort=names),
            y=alt.Y("total:Q", title=say("operations.axis_tokens"), axis=alt.Axis(format="~s")),
            color=alt.Color(
                "endpoint:N",
                scale=alt.Scale(
                    domain=names, range=(colours * (len(names) // len(colours) + 1))[: len(names)]
                ),
                legend=alt.Legend(orient="top", title=None, labelLimit=240),
            ),
            tooltip=[
                alt.Tooltip("day:O", title=say("operations.axis_day")),
                alt.Tooltip("endpoint:N", title=say("operations.endpoint")),
                alt.Tooltip("prompt_tokens:Q", title=say("operations.prompt_tokens"), format=","),
                alt.Tooltip("completion_tokens:Q", title=say("operations.completion_tokens"), format=","),
                alt.Tooltip("calls:Q", title=say("operations.calls"), format=","),
            ],
        )
        .properties(height=HEIGHT)
    )
    return chart
