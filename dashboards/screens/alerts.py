"""Alerts: what fires, since when, and all that is known of the chosen one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboards.asked import records
from dashboards.questions import alerts as questions
from dashboards.screens.alert_further import handled_words, slice_words
from dashboards.screens.alert_parts import show_alert
from dashboards.screens.choose import choose_row
from dashboards.shell.context import Context
from dashboards.shell.figures import value
from dashboards.shell.hostile import visible_line
from dashboards.words import TEXTS, Words

ICON = ":material/notifications:"

STATES = ("firing", "resolved")
MOST_ROWS_SHOWN = 10


def show(context: Context) -> None:
    """The whole page."""
    say, reader = context.say, context.reader
    reader.ahead(questions.listed, context.series, context.window.start, context.window.end)
    reader.ahead(questions.pending, context.series)
    asked = context.address.text("alert")
    if asked:
        reader.ahead(questions.one, context.series.experiment, asked)
    st.title(say("alerts.title"))
    known = questions.listed(reader, context.series, context.window.start, context.window.end)
    pending = questions.pending(reader, context.series)
    alert = questions.one(reader, context.series.experiment, asked) if asked else None
    if asked and alert is None:
        context.address.say_left_out("alert", asked)
    if known.empty:
        st.info(say("alerts.none"))
        if "drift" in context.pages:
            context.link("drift", say("alerts.to_drift"), icon=":material/trending_up:")
    else:
        shown = _filtered(context, known, len(pending))
        alert = _listed(context, shown, alert)
    if alert is not None:
        context.address.keep("alert", str(alert["alert_id"]))
        show_alert(context, alert)
    if not pending.empty:
        _pending(context, pending)


def _filtered(context: Context, known: pd.DataFrame, pending: int) -> pd.DataFrame:
    say = context.say
    firing = known[known["state"] == "firing"]
    groups = firing["group_key"].nunique()
    cause = say("alerts.causes_one" if groups == 1 else "alerts.causes", groups=groups) if groups else ""
    st.markdown(
        say(
            "alerts.count",
            firing=len(firing),
            causes=cause,
            resolved=len(known) - len(firing),
            pending=pending,
        )
    )
    if len(known) == questions.MOST_ALERTS:
        st.caption(say("alerts.capped", most=questions.MOST_ALERTS))
    left, right, _ = st.columns([1, 1, 1])
    states = context.address.multiselect(
        left, say("alerts.states"), "state", STATES, show=lambda name: say(f"alerts.{name}")
    )
    categories = context.address.multiselect(
        right,
        say("alerts.category"),
        "category",
        sorted(set(known["category"])),
        show=lambda name: category(say, name),
    )
    shown = known[known["state"].isin(states)] if states else known
    shown = shown[shown["category"].isin(categories)] if categories else shown
    if shown.empty:
        st.info(say("alerts.none_of_state", count=len(known)))
    return shown.reset_index(drop=True)


def _listed(context: Context, shown: pd.DataFrame, alert: dict[str, Any] | None) -> dict[str, Any] | None:
    """The table; the alert that a row was chosen for, else the one given, else the most pressing."""
    if shown.empty:
        return alert
    say = context.say
    table = pd.DataFrame([_row(context, row) for row in records(shown)])
    if not table[say("alerts.column_handled")].any():
        table = table.drop(columns=say("alerts.column_handled"))
    asked = "" if alert is None else str(alert["alert_id"])
    keys = [str(name) for name in shown["alert_id"]]
    columns = {say("alerts.column_handled"): st.column_config.TextColumn(width="medium")}
    pressing = keys[most_pressing(records(shown))]
    found = choose_row(table, keys, asked or pressing, "alerts", rows=MOST_ROWS_SHOWN, columns=columns)
    st.caption(say("alerts.choose"))
    if len(table) > MOST_ROWS_SHOWN:
        st.caption(say("alerts.rows_more", shown=MOST_ROWS_SHOWN, count=len(table)))
    if alert is not None and found == alert["alert_id"]:
        return alert
    return questions.one(context.reader, context.series.experiment, found)


def most_pressing(rows: Sequence[Mapping[Any, Any]]) -> int:
    """The place of the first alert that fires and that nobody handles, a critical one before a warning; of
    none such, of those that fire.
    """

    def order(place: int) -> tuple[bool, bool, bool, int]:
        row = rows[place]
        is_handled = bool(row["is_acknowledged"] or row["is_silenced"])
        return row["state"] != "firing", is_handled, row["severity"] != "critical", place

    return min(range(len(rows)), key=order)


def _row(context: Context, row: Mapping[Any, Any]) -> dict[str, Any]:
    say, zone = context.say, context.clock
    unit = str(row["unit"])
    change = (
        f"{value(say, unit, row['value_before'])} → {value(say, unit, row['value_since'])}" if unit else ""
    )
    began = row["started_at"] if pd.isna(row["change_at"]) else row["change_at"]
    return {
        say("alerts.column_state"): say(f"alerts.{row['state']}"),
        say("alerts.column_severity"): say(f"alerts.{row['severity']}"),
        say("alerts.column_handled"): handled_words(context, row),
        say("alerts.column_metric"): visible_line(str(row["metric"]), 60),
        say("alerts.column_slice"): slice_words(say, row, limit=60),
        say("alerts.column_began", zone=zone.name): zone.wall_time(began),
        say("alerts.column_fired", zone=zone.name): zone.wall_time(row["fired_at"]),
        say("alerts.column_change"): change,
        say("alerts.column_pairs"): int(row["pairs_since_change"] or row["pairs_since_start"]),
        say("alerts.column_group"): str(row["group_key"])[:8],
        say("alerts.column_category"): category(say, str(row["category"])),
    }


def category(say: Words, name: str) -> str:
    """What an alert is about, in the page's language."""
    key = f"alerts.category_{name}"
    return say(key) if key in TEXTS else name


def _pending(context: Context, pending: pd.DataFrame) -> None:
    say = context.say
    with st.expander(say("alerts.pending_title", count=len(pending))):
        st.dataframe(
            pd.DataFrame(
                {
                    say("alerts.column_metric"): pending["metric"],
                    say("alerts.column_slice"): [
                        slice_words(say, row, limit=60) for _, row in pending.iterrows()
                    ],
                    say("alerts.pending_share"): (pending["statistic"] / pending["threshold"]).map(
                        "{:.1%}".format
                    ),
                    say("alerts.pending_pairs"): pending["pairs_folded"],
                }
            ),
            hide_index=True,
        )
        if "drift" in context.pages:
            context.link("drift", say("alerts.to_drift"), icon=":material/trending_up:")
