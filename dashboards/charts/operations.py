"""Charts of the operations page: records by outcome, lag, tokens by day."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from dashboards.charts.hours import cells
from dashboards.charts.spec import Spec, field, rows, scale, wall_texts
from dashboards.charts.spec import time as time_axis
from dashboards.questions.operations import KINDS
from dashboards.shell.clock import Clock
from dashboards.shell.palette import CANDIDATE, GOOD, NEUTRAL, PURPLE, REFERENCE, SKY, WARN
from dashboards.words import Words

HEIGHT = 260

_COLOURS = {"compared": GOOD, "skipped": NEUTRAL, "failed": WARN, "dead_letter": CANDIDATE}


def throughput(records: pd.DataFrame, step: int, clock: Clock, say: Words) -> Spec:
    """Records a minute, stacked by outcome. `records`: at (UTC), kind, records; a step is `step` minutes."""
    names = {kind: say(f"operations.kind_{kind}") for kind in KINDS}
    counts: Counter[tuple[pd.Timestamp, int]] = Counter()
    for at, kind, count in zip(records["at"], records["kind"], records["records"], strict=True):
        counts[at, KINDS.index(kind)] += int(count)
    ordered = sorted(counts)
    times = pd.Series([at for at, _ in ordered])
    begins, ends = wall_texts(clock, times), wall_texts(clock, times + pd.Timedelta(minutes=step))
    drawn: list[Spec] = []
    for begin, end, key in zip(begins, ends, ordered, strict=True):
        # Stacked here: a bar from one time to another is not stacked by the library.
        bottom = drawn[-1]["top"] if drawn and drawn[-1]["begin"] == begin else 0.0
        rate = counts[key] / step
        bar = {"begin": begin, "end": end, "outcome": names[KINDS[key[1]]], "bottom": bottom}
        drawn.append({**bar, "top": bottom + rate, "rate": rate, "records": counts[key]})
    time = say("operations.axis_time", zone=clock.name)
    bars = {
        "data": rows(drawn),
        "mark": {"type": "rect"},
        "encoding": {
            "x": time_axis("begin", time),
            "x2": {"field": "end"},
            "y": field("bottom:Q", title=say("operations.axis_rate"), scale={"zero": True}),
            "y2": {"field": "top"},
            "color": field(
                "outcome:N",
                scale=scale({names[kind]: _COLOURS[kind] for kind in KINDS}),
                legend={"orient": "top", "title": " "},
            ),
            "tooltip": [
                field("begin:T", title=time, format="%Y-%m-%d %H:%M"),
                field("outcome:N", title=say("operations.outcome")),
                field("rate:Q", title=say("operations.axis_rate"), format=",.3~f"),
                field("records:Q", title=say("operations.count"), format=","),
            ],
        },
    }
    return {"layer": [bars], "height": HEIGHT}


def lag(steps: pd.DataFrame, clock: Clock, say: Words) -> Spec:
    """Mean (full line) and longest (dashed) lag of each step.

    `steps`: at (UTC), records, and mean and longest in seconds.
    """
    names = {"mean": say("operations.lag_mean"), "longest": say("operations.lag_max")}
    at, counts = wall_texts(clock, steps["at"]), cells(steps["records"])
    time = say("operations.axis_time", zone=clock.name)
    lines = {
        "data": rows(
            {"at": one, "records": count, "line": name, "seconds": value}
            for column, name in names.items()
            for one, count, value in zip(at, counts, cells(steps[column]), strict=True)
        ),
        "mark": {"type": "line", "point": {"size": 20}},
        "encoding": {
            "x": time_axis("at", time),
            "y": field("seconds:Q", title=say("operations.axis_lag"), scale={"zero": True}),
            "color": field(
                "line:N",
                scale={"domain": list(names.values()), "range": [REFERENCE, PURPLE]},
                legend={"orient": "top", "title": " ", "symbolType": "stroke"},
            ),
            "strokeDash": field(
                "line:N",
                scale={"domain": list(names.values()), "range": [[1, 0], [6, 3]]},
                legend=None,
            ),
            "tooltip": [
                field("at:T", title=time, format="%Y-%m-%d %H:%M"),
                field("line:N", title=say("operations.lag")),
                field("seconds:Q", title=say("operations.axis_lag"), format=",.1f"),
                field("records:Q", title=say("operations.count"), format=","),
            ],
        },
    }
    return {"layer": [lines], "height": HEIGHT}


def tokens(use: pd.DataFrame, say: Words) -> Spec:
    """Tokens of each endpoint by UTC day, side by side. `use`: endpoint (visible), day, prompt_tokens,
    completion_tokens, calls.
    """
    names = sorted(set(use["endpoint"]))
    colours = [SKY, REFERENCE, WARN, PURPLE, GOOD, CANDIDATE]
    columns = ("endpoint", "day", "prompt_tokens", "completion_tokens", "calls")
    day = {"field": "day", "type": "ordinal", "title": say("operations.axis_day")}
    bars = {
        "data": rows(
            {**row, "day": str(row["day"]), "total": row["prompt_tokens"] + row["completion_tokens"]}
            for row in (
                dict(zip(columns, row, strict=True))
                for row in zip(*(cells(use[name]) for name in columns), strict=True)
            )
        ),
        "mark": {"type": "bar"},
        "encoding": {
            "x": {**day, "axis": {"labelAngle": 0, "labelOverlap": True}},
            "xOffset": field("endpoint:N", sort=names),
            "y": field("total:Q", title=say("operations.axis_tokens"), axis={"format": "~s"}),
            "color": field(
                "endpoint:N",
                scale={"domain": names, "range": (colours * (len(names) // len(colours) + 1))[: len(names)]},
                legend={"orient": "top", "title": " ", "labelLimit": 240},
            ),
            "tooltip": [
                day,
                field("endpoint:N", title=say("operations.endpoint")),
                field("prompt_tokens:Q", title=say("operations.prompt_tokens"), format=","),
                field("completion_tokens:Q", title=say("operations.completion_tokens"), format=","),
                field("calls:Q", title=say("operations.calls"), format=","),
            ],
        },
    }
    return {"layer": [bars], "height": HEIGHT}
