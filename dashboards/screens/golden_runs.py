"""Golden runs over time, and the table in which one is chosen."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from dashboards.asked import records
from dashboards.charts import golden as charts
from dashboards.charts.drawn import draw
from dashboards.questions import golden as questions
from dashboards.screens.choose import choose_row
from dashboards.screens.golden_cases import show_run
from dashboards.shell.context import Context
from dashboards.shell.hidden_text import TextHidden
from dashboards.shell.hostile import in_markdown, visible_line

MOST_ROWS_SHOWN = 8
DRAWN = ("mean_score", "exact_rate", "extraction_accuracy")
RATES = (*DRAWN, "faulty_rate")


def show_runs(context: Context) -> None:
    """The whole section; without a run, how to make one."""
    say = context.say
    st.subheader(say("golden.golden"), anchor="golden")
    sets = questions.sets(context.reader, context.series)
    if not sets:
        _none(context)
        return
    place = st.columns([1, 2])[0]
    set_name = context.address.selectbox(
        place, say("golden.set"), "set", sets, show=lambda name: visible_line(name, 80)
    )
    window = context.window
    runs = questions.runs(context.reader, context.series, set_name, window.start, window.end)
    if runs.empty:
        st.info(say("golden.none_range"))
        return
    passed = int((runs["status"] == "passed").sum())
    st.caption(say("golden.runs_count", count=len(runs), set=in_markdown(set_name), passed=passed))
    if len(runs) >= questions.MOST_RUNS:
        st.caption(say("golden.runs_capped", most=questions.MOST_RUNS))
    if not runs["is_baseline"].any():
        st.caption(say("golden.baseline_none"))
    # Of the run that will most likely be chosen below, and of what it is held against.
    linked = runs[runs["run_id"].astype(str) == context.address.text("run")]
    likely = (linked if len(linked) else runs).iloc[-1:]
    for _, run in pd.concat([likely, runs[runs["is_baseline"].astype(bool)].iloc[:1]]).iterrows():
        context.reader.ahead(questions.cases, run, "")
    _charts(context, runs)
    st.caption(say("golden.shapes"))
    chosen = _choose(context, runs.iloc[::-1].reset_index(drop=True))
    show_run(context, chosen, runs)


def _none(context: Context) -> None:
    say, experiment = context.say, shlex.quote(context.series.experiment)
    st.info(say("golden.none"))
    try:
        known = questions.kept_cases(context.reader)
    except TextHidden:
        known = []
    if known:
        named = [say("golden.none_set", name=in_markdown(name), count=count) for name, count in known]
        st.markdown(say("golden.none_sets", sets=", ".join(named)))
    name = shlex.quote(known[0][0]) if known else "core"
    lines = [
        f"gnomon golden add --set {name} --source {experiment} --from 7d --limit 50",
        f"gnomon golden run --set {name}",
        "",
        "[golden]",
        f'set = "{known[0][0] if known else "core"}"',
        "interval_s = 3600",
    ]
    st.code("\n".join(visible_line(line, 300) for line in lines), language=None)


def _charts(context: Context, runs: pd.DataFrame) -> None:
    say = context.say
    drawn = runs.assign(endpoint_name=[visible_line(str(name), 60) for name in runs["endpoint_name"]])
    for place, column in zip(st.columns(3), DRAWN, strict=True):
        with place:
            if drawn[column].isna().all():
                st.caption(say("golden.unscored", what=say(f"golden.{column}")))
            else:
                drawn[column] = drawn[column].astype(float)
                draw(charts.over_time(drawn, column, context.clock, say))


def _choose(context: Context, runs: pd.DataFrame) -> pd.Series:
    """The run that was chosen, or the newest. `runs`: newest first."""
    say = context.say
    keys = [str(name) for name in runs["run_id"]]
    asked = context.address.one_of("run", keys)
    table = pd.DataFrame([_row(context, row) for row in records(runs)])
    number = st.column_config.NumberColumn
    columns = {say(f"golden.{name}"): number(format="%.3f") for name in RATES}
    found = choose_row(table, keys, asked, "golden-runs", rows=MOST_ROWS_SHOWN, columns=columns)
    if not found:
        st.caption(say("golden.choose_run"))
        found = keys[0]
    context.address.keep("run", found)
    return runs.iloc[keys.index(found)]


def _row(context: Context, run: Mapping[Any, Any]) -> dict[str, Any]:
    say, clock = context.say, context.clock
    told = (run["model"], run["quantization"], run["engine"], run["engine_version"])
    return {
        say("golden.started_at", zone=clock.name): clock.wall_time(run["started_at"]),
        say("golden.endpoint"): visible_line(str(run["endpoint_name"]), 60),
        say("golden.status"): charts.status_words(say, str(run["status"])),
        say("golden.baseline"): say("golden.is_baseline") if run["is_baseline"] else "",
        say("golden.passed_cases"): f"{run['passed_cases']}/{run['cases']}",
        **{say(f"golden.{name}"): run[name] for name in RATES},
        say("golden.newly_failing"): run["newly_failing"],
        say("golden.newly_passing"): run["newly_passing"],
        say("golden.started_by"): say(f"golden.by_{run['started_by']}"),
        say("golden.served"): visible_line(" ".join(str(one) for one in told if one), 120),
        say("golden.runs"): str(run["run_id"])[:8],
    }
