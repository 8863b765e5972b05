"""JSON of both sides by path, with schema errors."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dashboards.pair_views.json_paths import MAX_PATHS, JsonSide, by_path
from dashboards.shell.context import Context
from dashboards.shell.hostile import visible_line

LONGEST_VALUE = 500


def show_json(
    context: Context, reference: JsonSide, candidate: JsonSide, *, schema: dict[str, Any] | None
) -> None:
    """What each side is, the paths that differ, and the errors against the request's schema."""
    say = context.say
    sides = {"reference": reference, "candidate": candidate}
    for column, (role, side) in zip(st.columns(2), sides.items(), strict=True):
        with column:
            st.markdown(f"**{say(f'pair.{role}')}**: {say(f'pair.json_{side.state}')}")
            if side.why:
                st.text(visible_line(side.why, LONGEST_VALUE))
    table = by_path(reference, candidate)
    if table.empty:
        st.info(say("pair.json_none"))
    else:
        show_paths(context, table, "json_all")
    _schema_errors(context, sides, schema)


def show_paths(context: Context, table: pd.DataFrame, name: str) -> None:
    """A table of `by_path`: the paths that differ, or all; `name` is the toggle's parameter."""
    say = context.say
    differing = int(table["differs"].sum())
    st.caption(say("pair.json_count", differing=differing, count=len(table)))
    shows_all = context.address.toggle(st.container(), say("pair.json_all"), name)
    rows = table if shows_all else table[table["differs"]]
    if rows.empty:
        return
    shown = rows.head(MAX_PATHS)
    if len(rows) > MAX_PATHS:
        st.caption(say("pair.json_cut", count=MAX_PATHS))
    texts = {
        column: [visible_line(text, LONGEST_VALUE) for text in shown[column]]
        for column in ("path", "reference", "candidate")
    }
    st.dataframe(
        pd.DataFrame(texts | {"differs": ["≠" if one else "=" for one in shown["differs"]]}),
        hide_index=True,
        placeholder="",
        column_config={
            "path": say("pair.path"),
            "reference": say("pair.reference"),
            "candidate": say("pair.candidate"),
            "differs": st.column_config.TextColumn(say("pair.differs"), width="small"),
        },
    )


def _schema_errors(context: Context, sides: dict[str, JsonSide], schema: dict[str, Any] | None) -> None:
    say = context.say
    st.markdown(f"**{say('pair.schema_errors')}**")
    if schema is None:
        st.caption(say("pair.schema_none"))
        return
    rows = [
        {
            "side": say(f"pair.{role}"),
            "path": visible_line(path, LONGEST_VALUE),
            "message": visible_line(message, LONGEST_VALUE),
        }
        for role, side in sides.items()
        for path, message in side.errors
    ]
    if not rows:
        unread = [role for role, side in sides.items() if side.state != "valid"]
        if unread:
            st.caption(say("pair.schema_unread", sides=", ".join(say(f"pair.{role}") for role in unread)))
        else:
            st.caption(say("pair.schema_ok"))
        return
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        placeholder="",
        column_config={name: say(f"pair.{name}") for name in ("side", "path", "message")},
    )
