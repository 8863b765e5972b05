"""An alert's metric by the hour, with when the change came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from dashboards.charts.hours import mean_lines
from dashboards.charts.spec import Spec, field, rows, wall_texts
from dashboards.shell.clock import Clock
from dashboards.shell.palette import NEUTRAL, REFERENCE
from dashboards.words import Words

HEIGHT = 300
LEAST_ROOM = timedelta(minutes=20)


def around_change(
    hours: Sequence[Mapping[str, Any]], alert: Mapping[str, Any], clock: Clock, say: Words
) -> Spec:
    """Mean, baseline and tolerance of each hour, a band for the change's 95 % set, a line for the alarm.

    `hours`: hour_at (UTC), pairs, observed, baseline, tolerated.
    """
    change = alert["change_at"] or alert["started_at"]
    known = [change, alert["fired_at"], *(hour["hour_at"] for hour in hours)]
    # Room beside the first and last of them, for their names.
    room = max((max(known) - min(known)) / 8, LEAST_ROOM)
    title = say("alerts.axis_time", zone=clock.name)
    lines = mean_lines(
        hours,
        clock,
        {name: say(f"alerts.legend_{name}") for name in ("observed", "tolerated", "baseline")},
        time=title,
        mean=say("alerts.axis_observed"),
        pairs=say("alerts.pairs"),
    )
    lines["encoding"]["x"]["scale"] = {"domain": wall_texts(clock, (min(known) - room, max(known) + room))}
    layers = [lines]
    first, last = alert["change_earliest_at"], alert["change_latest_at"]
    if first is not None and last is not None:
        left, right = wall_texts(clock, (first, last))
        layers.insert(0, _band(left, right, say("alerts.legend_change")))
    began, fired = wall_texts(clock, (change, alert["fired_at"]))
    layers.append(_rule(began, say("alerts.legend_began"), REFERENCE, 2))
    layers.append(_rule(fired, say("alerts.legend_fired"), NEUTRAL, 16))
    return {"layer": layers, "height": HEIGHT}


def _band(left: str, right: str, words: str) -> Spec:
    return {
        "data": rows([{"at": left, "end": right, "what": words}]),
        "mark": {"type": "rect", "color": REFERENCE, "opacity": 0.15},
        "encoding": {
            "x": field("at:T"),
            "x2": {"field": "end"},
            "tooltip": field("what:N", title=" "),
        },
    }


def _rule(at: str, words: str, colour: str, y: int) -> Spec:
    text = {"type": "text", "align": "left", "baseline": "top", "dx": 4, "color": colour}
    return {
        "data": rows([{"at": at, "what": words}]),
        "encoding": {"x": field("at:T")},
        "layer": [
            {
                "mark": {"type": "rule", "color": colour, "strokeWidth": 2},
                "encoding": {"tooltip": field("what:N")},
            },
            {"mark": text, "encoding": {"y": {"value": y}, "text": field("what:N")}},
        ],
    }
