"""Golden and rollback: whether to go back, and how the golden sets stand."""

from __future__ import annotations

import streamlit as st

from dashboards.screens.golden_rollback import show_rollback
from dashboards.screens.golden_runs import show_runs
from dashboards.shell.context import Context

ICON = ":material/workspace_premium:"


def show(context: Context) -> None:
    """The whole page."""
    st.title(context.say("golden.title"))
    show_rollback(context)
    st.divider()
    show_runs(context)
