"""An answer of the SQL page: its cost, table, chart and file."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import pandas as pd
import streamlit as st

from compare.store.answer import Result
from dashboards.charts import sql_box as charts
from dashboards.charts.drawn import draw
from dashboards.questions import sql_box as questions
from dashboards.questions.sql_box import Statement
from dashboards.screens.operations_storage import size_words
from dashboards.shell.clock import Clock
from dashboards.shell.context import Context
from dashboards.shell.hostile import in_markdown, visible_line

SHOWN_ROWS = 1_000
CELL_CHARACTERS = 2_000
EXACT_IN_BROWSER = 2**53
"""Greater whole numbers lose their last digits in a browser: they are shown as text."""


class Answered(msgspec.Struct, frozen=True):
    """An answer, the seconds until it was here, and when that was (UTC)."""

    statement: Statement
    result: Result
    seconds: float
    at: datetime


def show_answer(context: Context, answered: Answered, name: str) -> None:
    """All of it. `name` is the file's, without its ending."""
    say, result = context.say, answered.result
    st.caption(_cost(context, answered))
    if not len(result):
        st.info(say("sql_box.none"))
        return
    if result.is_cut:
        st.warning(say("sql_box.cut", rows=f"{len(result):,}"))
    data = table_of(result, context.clock)
    tables, chart = st.tabs([say("sql_box.table"), say("sql_box.chart")])
    with tables:
        st.dataframe(data.head(SHOWN_ROWS), hide_index=True)
        if len(data) > SHOWN_ROWS:
            st.caption(say("sql_box.shown", rows=f"{SHOWN_ROWS:,}", count=f"{len(data):,}"))
        _file(context, answered, name)
    with chart:
        _chart(context, data)


def table_of(result: Result, clock: Clock) -> pd.DataFrame:
    """The rows as visible text, numbers and times of the wall clock; no two columns have the same name."""
    names = questions.unlike_names(visible_line(name, 120) for name in result.column_names)
    columns = list(zip(*result.rows, strict=True)) if result.rows else [()] * len(names)
    made = {}
    for name, column in zip(names, columns, strict=True):
        known = [value for value in column if value is not None]
        if known and all(isinstance(value, datetime) for value in known):
            made[f"{name} ({clock.name})"] = clock.wall(pd.Series(column))
        else:
            made[name] = pd.Series(_values(column, known))
    return pd.DataFrame(made)


def _values(column: tuple[Any, ...], known: list[Any]) -> list[Any]:
    if known and all(isinstance(value, bool) for value in known):
        return list(column)
    if known and all(isinstance(value, int | float | Decimal) for value in known):
        if any(isinstance(value, int) and abs(value) > EXACT_IN_BROWSER for value in known):
            return [None if value is None else str(value) for value in column]
        return [float(value) if isinstance(value, Decimal) else value for value in column]
    return [None if value is None else _text(value) for value in column]


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else _as_text(value)
    if len(text) <= CELL_CHARACTERS and text.isprintable():
        return text
    return visible_line(text, CELL_CHARACTERS)


def _as_text(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else questions.plain(value)


def _cost(context: Context, answered: Answered) -> str:
    say, cost = context.say, answered.result.cost
    told = {
        "rows": f"{len(answered.result):,}",
        "here": f"{answered.seconds:,.2f}",
        "time": context.clock.show(answered.at),
    }
    if cost is None:
        return say("sql_box.cost_unknown", **told)
    words = say(
        "sql_box.cost",
        store=f"{cost.seconds:,.3f}",
        read=f"{cost.rows:,}",
        size=size_words(cost.bytes),
        **told,
    )
    return f"{words} {say('sql_box.cost_cut')}" if answered.result.is_cut else words


def _file(context: Context, answered: Answered, name: str) -> None:
    say = context.say
    makes = partial(questions.as_csv, answered.result)
    about = say("sql_box.download_help")
    if answered.result.is_cut:
        makes = partial(questions.file_of, context.reader, answered.statement)
        about = say(
            "sql_box.download_long_help",
            rows=f"{questions.FILE_ROWS:,}",
            size=size_words(questions.FILE_BYTES),
        )
    st.download_button(
        say("sql_box.download"),
        makes,
        file_name=f"{name}.csv",
        mime="text/csv",
        icon=":material/download:",
        help=about,
        on_click="ignore",
    )
    st.caption(
        f"{about} {say('sql_box.download_note')}" if answered.result.is_cut else say("sql_box.download_note")
    )


def _chart(context: Context, data: pd.DataFrame) -> None:
    say, address = context.say, context.address
    names = [str(name) for name in data]
    numbers = [
        name
        for name in names
        if pd.api.types.is_numeric_dtype(data[name]) and not pd.api.types.is_bool_dtype(data[name])
    ]
    if not numbers:
        st.info(say("sql_box.chart_none"))
        return
    times = [name for name in names if pd.api.types.is_datetime64_any_dtype(data[name])]
    words = [name for name in names if name not in numbers and name not in times]
    first = (times or words or names)[0]
    columns = st.columns(4, vertical_alignment="bottom")
    x = address.selectbox(columns[0], say("sql_box.x"), "x", names, default=first)
    left = [name for name in numbers if name != x] or numbers
    y = address.selectbox(columns[1], say("sql_box.y"), "y", left)
    groups = ["", *(name for name in words if name != x)]
    by = address.selectbox(
        columns[2], say("sql_box.by"), "by", groups, show=lambda name: name or say("sql_box.by_none")
    )
    kind = address.selectbox(
        columns[3],
        say("sql_box.kind"),
        "chart",
        charts.KINDS,
        show=lambda kind: say(f"sql_box.kind_{kind}"),
        default=charts.default_kind(data[x]),
    )
    drawn = data.head(charts.MOST_ROWS)
    if by:
        most = drawn[by].astype(str).value_counts().head(charts.MOST_VALUES).index
        if drawn[by].astype(str).nunique() > len(most):
            st.caption(say("sql_box.chart_values", count=len(most), column=in_markdown(by)))
        drawn = drawn[drawn[by].astype(str).isin(most)]
    draw(charts.picked(drawn, x, y, by, kind, (x, y)))
    if len(data) > charts.MOST_ROWS:
        st.caption(say("sql_box.chart_cut", rows=f"{charts.MOST_ROWS:,}"))
