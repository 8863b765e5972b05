"""Slices ranked by how far they are over the noise floor."""

from __future__ import annotations

from typing import Any

import streamlit as st

from compare.alerts.gather import FLOOR_COLUMNS
from compare.alerts.metrics import DIMENSIONS
from dashboards.asked import Asked
from dashboards.charts import drift as charts
from dashboards.charts.drawn import draw
from dashboards.questions import drift as questions
from dashboards.questions import drift_samples, pairs
from dashboards.questions.drift import State
from dashboards.questions.drift_samples import Part
from dashboards.screens.alert_further import dimension
from dashboards.screens.choose import choose_row
from dashboards.screens.table import table_of
from dashboards.shell.context import Context
from dashboards.shell.hostile import in_markdown, visible_line

FAULTS = "faults"
MOST_DRAWN = 25


def begin_floor(context: Context, row: State) -> None:
    """Begin what `show_floor` asks if nothing else is chosen there than it begins with."""
    metric, by = context.address.text("floor", _own(row)), context.address.text("by", DIMENSIONS[1])
    if metric in FLOOR_COLUMNS and by in DIMENSIONS[1:]:
        context.reader.ahead(_excess, context, metric, by)


def show_floor(context: Context, detectors: list[State], row: State | None) -> None:
    """The section; `row` is the chosen detector, whose metric and dimension it begins with."""
    say, address = context.say, context.address
    st.subheader(say("drift.floor"))
    left, right, _ = st.columns(3)
    metrics = [FAULTS, *FLOOR_COLUMNS]
    metric = address.selectbox(
        left,
        say("drift.floor_metric"),
        "floor",
        metrics,
        show=lambda name: say("drift.floor_faults") if name == FAULTS else name,
        default=_own(row),
    )
    by = address.selectbox(
        right, say("drift.floor_by"), "by", DIMENSIONS[1:], show=lambda name: dimension(say, name)
    )
    if metric == FAULTS:
        found = drift_samples.fault_excess_by_slice(detectors, by)
        st.caption(say("drift.floor_faults_note"))
        empty = "drift.floor_slices_none"
    else:
        part, found = _excess(context.reader, context, metric, by)
        st.caption(say("drift.floor_note"))
        if part.start is not None:
            start, most = context.clock.show(part.start), f"{drift_samples.LOOKED_THROUGH:,}"
            st.caption(say("drift.floor_period", start=start, most=most))
        empty = "drift.floor_none"
    if not found:
        st.info(say(empty))
        return
    _ranked(context, found, by, metric)


def _own(row: State | None) -> str:
    """The metric that is shown first."""
    return FAULTS if row is None or row["metric"] not in FLOOR_COLUMNS else str(row["metric"])


def _excess(asked: Asked, context: Context, metric: str, by: str) -> tuple[Part, list[dict[str, Any]]]:
    """The newest part of the range that is not too much to look through, and the slices' excess in it."""
    series, window = context.series, context.window
    hours = questions.hours(asked, series, questions.WHOLE, window.start, window.end)
    part = drift_samples.narrowed(Part(window.start, window.end), hours, drift_samples.LOOKED_THROUGH)
    return part, drift_samples.excess_by_slice(asked, series, FLOOR_COLUMNS[metric], by, part)


def _ranked(context: Context, found: list[dict[str, Any]], by: str, metric: str) -> None:
    say = context.say
    shown = [{**row, "slice": visible_line(row["slice"], 60) or "-"} for row in found]
    unit = {FAULTS: say("drift.unit_rate"), "kl_forced": "nats"}.get(metric, say("drift.unit_score"))
    left, right = st.columns([1, 1])
    drawn = shown[:MOST_DRAWN]
    draw(charts.excess(drawn, say, f"{say('drift.excess')} ({unit})"), left)
    if len(drawn) < len(shown):
        left.caption(say("drift.floor_cut", count=len(drawn), all=f"{len(shown):,}"))
    with right:
        keys = [row["slice"] for row in found]
        names = ("slice", "excess", "low", "high", "candidate", "floor", "requests")
        table = table_of(
            [
                {**{name: row[name] for name in names}, "bounded_by": say(f"drift.side_{row['bounded_by']}")}
                for row in shown
            ]
        )
        chosen = choose_row(table, keys, "", f"floor-{by}", rows=15, columns=_columns(context, by))
        if by not in pairs.DIMENSIONS:
            return
        if not chosen:
            st.caption(say("drift.floor_choose"))
            return
        where: dict[str, Any] = {by: [chosen]}
        if metric == FAULTS:
            where["side"] = "candidate_only"
        name = in_markdown(visible_line(chosen, 60))
        context.link("pairs", say("drift.to_slice", slice=name), icon=":material/filter_list:", **where)


def _columns(context: Context, by: str) -> dict[str, Any]:
    say = context.say
    titles = {
        "excess": "excess",
        "low": "low",
        "high": "high",
        "candidate": "candidate",
        "floor": "floor_value",
    }
    return {
        "slice": dimension(say, by),
        **{
            name: st.column_config.NumberColumn(say(f"drift.{key}"), format="%.4f")
            for name, key in titles.items()
        },
        "requests": st.column_config.NumberColumn("n", format="localized"),
        "bounded_by": say("drift.bounded_by"),
    }
