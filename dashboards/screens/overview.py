"""Overview: is it safe to ship?"""

from __future__ import annotations

from dashboards.shell.context import Context

ICON = ":material/balance:"


def show(context: Context) -> None:
    """The whole page."""
    import streamlit as st

    st.title(context.say("overview.title"))
    context.link("pairs", "pairs", verdict=["candidate_worse"])
