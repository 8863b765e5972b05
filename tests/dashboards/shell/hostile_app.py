"""Shows hostile texts in every kind of place that the explorer has. Run by Streamlit in a test."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboards.shell.hostile import in_code, in_markdown, visible, visible_line
from dashboards.shell.marks import Piece, show_marks, spans_marked
from tests.dashboards.shell.hostile_texts import LINE, TEXTS

for number, text in enumerate(TEXTS):
    st.markdown(f"markdown {number} {in_markdown(text, 400)} end")
    st.caption(f"caption {number} {in_markdown(text, 400)}")
    st.metric(in_markdown(text), number)
    st.button(in_markdown(text), key=f"button-{number}", help=in_markdown(text, 400))
    st.text(visible(text))
    st.code(visible(text), language=None)
    st.error(f"error {number} {in_code(text, 400)} end")
st.warning(in_markdown(" ".join(TEXTS), 2_000))
st.segmented_control("choice", [in_markdown(text) for text in TEXTS], label_visibility="collapsed")
st.dataframe(pd.DataFrame({visible_line(TEXTS[0]): [visible_line(text) for text in TEXTS]}))
show_marks(
    [Piece(text, "evidence", note=text, mark="<end>") for text in TEXTS],
    key="pieces",
    label="pieces",
    cut="cut",
)
show_marks(spans_marked(LINE, [(10, 20, "far in")]), key="line", label="line", cut="cut")
st.code(visible_line(LINE, 2_000), language=None, wrap_lines=True)
st.text("all drawn")
