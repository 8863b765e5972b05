"""A part of a page that may fail while the others show."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from compare.store.errors import StoreBusyError, StoreQueryError
from dashboards.shell import states
from dashboards.shell.context import Context
from dashboards.shell.hidden_text import TextHidden
from dashboards.shell.reader import Cancelled


def show_section(context: Context, title: str, anchor: str, show: Callable[[Context], None]) -> None:
    """The heading and what `show` draws, or why it cannot. A store that is away concerns the whole page."""
    st.subheader(title, anchor=anchor)
    try:
        show(context)
    except (Cancelled, TextHidden, StoreQueryError, StoreBusyError) as error:
        if states.is_owner_gone(error):
            raise
        states.explain(error, context.say, context.reader.forget, section=anchor)
