"""One pair: the two answers side by side."""

from __future__ import annotations

import streamlit as st

from dashboards.shell.context import Context
from dashboards.shell.marks import Piece, show_marks

ICON = ":material/compare:"


def show(context: Context) -> None:
    """The whole page."""
    st.title(context.say("pair.title"))
    pieces = [
        Piece("hello <b>x</b>\u202e "),
        Piece("world", "evidence", "note <i>"),
        Piece(" heat", strength=0.7, note="n"),
    ]
    show_marks(pieces, key="m", label="answer", cut="cut")
