"""What describes an alert further: its metric by the hour, tests, power, history and the commands."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pandas as pd
import streamlit as st

from compare.alerts.metrics import BY_NAME
from dashboards.asked import Asked
from dashboards.charts import alerts as charts
from dashboards.charts.drawn import draw
from dashboards.charts.times import FEWEST_STEPS
from dashboards.questions import alerts as questions
from dashboards.questions.drift import Detector, Hours
from dashboards.shell.context import Context
from dashboards.shell.figures import bounds, known, p_value, unit_of, value
from dashboards.shell.hostile import visible_line
from dashboards.words import TEXTS, Words

ROUND = timedelta(hours=12)
"""How long before and after an alert its metric is drawn."""


def slice_words(say: Words, row: Mapping[str, Any] | pd.Series, limit: int = 80) -> str:
    """`route extract`, or the whole experiment; plain text."""
    if row["dimension"] == "experiment":
        return dimension(say, "experiment")
    return visible_line(f"{dimension(say, str(row['dimension']))} {row['slice']}", limit)


def dimension(say: Words, name: str) -> str:
    """What slices are cut by, in the page's language; a name that is not ours as it is."""
    key = f"overview.dimension_{name}"
    return say(key) if key in TEXTS else name


def handled_words(context: Context, row: Mapping[str, Any] | pd.Series) -> str:
    """By whom an alert is acknowledged, until when it is silenced; plain text, empty for neither."""
    say, found = context.say, []
    if row["is_acknowledged"]:
        found.append(say("alerts.acknowledged_short", name=visible_line(str(row["acknowledged_by"]), 40)))
    if row["is_silenced"]:
        until = context.clock.show(pd.Timestamp(row["silenced_until"]).to_pydatetime(), seconds=False)
        found.append(say("alerts.silenced_short", time=until))
    return ", ".join(found)


def show_further(context: Context, alert: dict[str, Any]) -> None:
    """The tabs under an alert, a row of `alerts_v1`."""
    say = context.say
    names = ("over_time", "tests", "power", "history", "gathered", "command")
    over_time, tests, power, history, gathered, command = st.tabs([say(f"alerts.{name}") for name in names])
    with over_time:
        _over_time(context, alert)
    with tests:
        _tests(context, alert)
    with power:
        st.markdown(_power(say, alert))
    with history:
        _history(context, alert)
    with gathered:
        _gathered(context, alert)
    with command:
        st.code(commands(alert), language=None, wrap_lines=True)


def _over_time(context: Context, alert: Mapping[str, Any]) -> None:
    hours = hours_around(context.reader, alert)
    if not hours:
        st.caption(context.say("alerts.over_time_none"))
    elif len(hours) < FEWEST_STEPS:
        st.caption(few_hours(context, hours, alert))
    else:
        draw(charts.around_change(hours, alert, context.clock, context.say))
    if alert["metric"] in BY_NAME:
        context.link(
            "drift",
            context.say("alerts.to_series"),
            icon=":material/trending_up:",
            detector=Detector(alert["metric"], alert["dimension"], alert["slice"]),
        )


def hours_around(asked: Asked, alert: Mapping[str, Any]) -> Hours:
    """The hours of an alert's series from before its change until after its end."""
    first = alert["change_earliest_at"] or alert["change_at"] or alert["started_at"]
    last = alert["resolved_at"] or alert["fired_at"]
    return questions.hours(asked, alert, first - ROUND, max(last, alert["fired_at"]) + ROUND)


def few_hours(context: Context, hours: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> str:
    """The hours in words, each with its mean and n: so few of them make no line."""
    say = context.say
    unit = unit_of(row["kind"])
    lines = [
        say(
            "alerts.few_hour",
            time=context.clock.show(one["hour_at"], seconds=False),
            observed=value(say, unit, one["observed"]),
            count=f"{one['pairs']:,}",
            tolerated=value(say, unit, one["tolerated"]),
        )
        for one in hours
    ]
    return "  \n".join([say("alerts.few_one" if len(hours) == 1 else "alerts.few", count=len(hours)), *lines])


def _tests(context: Context, alert: Mapping[str, Any]) -> None:
    say, unit = context.say, "score" if alert["unit"] == "ratio" else str(alert["unit"])
    st.caption(say("alerts.tests_note"))
    if not alert["tests"]:
        st.caption(say("alerts.tests_none"))
        return
    st.dataframe(
        pd.DataFrame(
            [
                {
                    say("alerts.test"): one["name"],
                    say("alerts.statistic"): f"{one['statistic']:.4g}",
                    say("alerts.p"): p_value(one["p_value"]),
                }
                for one in alert["tests"]
            ]
        ),
        hide_index=True,
    )
    if alert["slices"]:
        st.caption(say("alerts.slices_note"))
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        say("alerts.column_slice"): slice_words(say, one),
                        say("alerts.effect"): value(say, unit, one["effect"], signed=True),
                        say("alerts.pairs"): one["pairs"],
                        say("alerts.p"): p_value(one["p_value"]),
                        say("alerts.p_adjusted"): p_value(one["p_adjusted"]),
                    }
                    for one in alert["slices"]
                ]
            ),
            hide_index=True,
        )


def _power(say: Words, alert: Mapping[str, Any]) -> str:
    hours = f"{alert['detectable_hours']:.0f}"
    if alert["gathered_at"] is None:
        return say("alerts.not_gathered")
    if not alert["pairs_per_hour"]:
        return say("alerts.power_none", hours=hours)
    traffic = say("alerts.traffic", hours=hours, traffic=f"{alert['pairs_per_hour']:,.1f}")
    least = known(alert["detectable"])
    if least is None:
        return say("alerts.power_never", traffic=traffic, hours=hours)
    key, number = {
        "bounded_mean": ("mean", f"{least:.3f}"),
        "rank": ("rank", f"{least:.3g}"),
        "candidate_only_excess": ("excess", f"{least:.2%}"),
    }.get(alert["kind"], ("rate", f"{least:.2%}"))
    return say(f"alerts.power_{key}", traffic=traffic, least=number, hours=hours)


def _history(context: Context, alert: Mapping[str, Any]) -> None:
    say, clock = context.say, context.clock
    events = questions.history(context.reader, alert)
    st.dataframe(
        pd.DataFrame(
            {
                say("alerts.time", zone=clock.name): clock.wall(events["happened_at"]),
                say("alerts.event"): [say(f"alerts.event_{name}") for name in events["event"]],
                say("alerts.by"): events["acted_by"].map(visible_line),
                say("alerts.detail"): events["detail"].map(lambda text: visible_line(text, 500)),
            }
        ),
        hide_index=True,
    )
    st.markdown(f"#### {say('alerts.notices')}")
    told = questions.notices(context.reader, alert)
    if told.empty:
        st.caption(say("alerts.notices_none"))
        return
    st.dataframe(
        pd.DataFrame(
            {
                say("alerts.number"): told["number"],
                say("alerts.reason"): told["reason"],
                say("alerts.column_severity"): [say(f"alerts.{name}") for name in told["severity"]],
                say("alerts.time", zone=clock.name): clock.wall(told["created_at"]),
                say("alerts.sink"): told["sink"].map(visible_line),
                say("alerts.delivered"): told["is_delivered"],
                say("alerts.attempts"): told["attempts"],
                say("alerts.error"): told["error"].map(lambda text: visible_line(text, 300)),
            }
        ),
        hide_index=True,
    )


def _gathered(context: Context, alert: Mapping[str, Any]) -> None:
    say, unit = context.say, str(alert["unit"])
    found = questions.evidence(context.reader, alert)
    if found.empty:
        st.caption(say("alerts.not_gathered"))
        return
    rows = [
        {
            say("alerts.gathered_at", zone=context.clock.name): at,
            say("alerts.column_severity"): say(f"alerts.{row['severity']}"),
            say("alerts.column_pairs"): row["pairs_since"],
            say("alerts.now"): value(say, unit, row["value_since"]),
            say("alerts.effect"): value(say, unit, row["effect"], signed=True),
            say("alerts.interval_column"): bounds(
                say, unit, row["effect_low"], row["effect_high"], signed=True
            ),
        }
        for at, (_, row) in zip(context.clock.wall(found["gathered_at"]), found.iterrows(), strict=True)
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True)


def commands(alert: Mapping[str, Any]) -> str:
    """What does the same as the page's buttons, to copy into a shell."""
    prefix = shlex.quote(str(alert["alert_id"]))
    return "\n".join(
        (
            f"gnomon alerts show {prefix}",
            f"gnomon alerts ack {prefix} --note '...'",
            f"gnomon alerts silence {prefix} --for 8h --note '...'",
            f"gnomon alerts unsilence {prefix}",
        )
    )
