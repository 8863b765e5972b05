"""Golden and rollback: whether to go back, and how the golden sets stand."""

from __future__ import annotations

import streamlit as st

from compare.rollback.snapshots import read_snapshots
from dashboards.questions import golden as questions
from dashboards.screens.golden_rollback import show_rollback
from dashboards.screens.golden_runs import show_runs
from dashboards.shell.context import Context

ICON = ":material/workspace_premium:"


def show(context: Context) -> None:
    """The whole page."""
    reader, series = context.reader, context.series
    reader.ahead(questions.evaluation, series)
    reader.ahead(questions.decisions, series)
    reader.ahead(read_snapshots, series.experiment)
    reader.ahead(questions.sets, series)
    st.title(context.say("golden.title"))
    show_rollback(context)
    st.divider()
    show_runs(context)
