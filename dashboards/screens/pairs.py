"""Pairs: the list."""

from __future__ import annotations

import streamlit as st

from dashboards.shell.context import Context

ICON = ":material/list:"


def show(context: Context) -> None:
    """The whole page."""
    st.title(context.say("pairs.title"))
    context.address.multiselect(
        st.container(), context.say("pairs.verdict"), "verdict", ["match", "candidate_worse"]
    )
    context.address.text_input(st.container(), context.say("pairs.request_id"), "request_id")
