"""Operations: what the store takes on disk, and what replay costs."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import streamlit as st

from compare.recipes import find_recipe
from compare.store.errors import StoreQueryError
from dashboards.asked import frame
from dashboards.questions import storage as questions
from dashboards.screens.choose import table_height
from dashboards.shell.context import Context, utc_now
from dashboards.shell.hostile import visible_line
from dashboards.shell.states import NO_RIGHT

MOST_ROWS_SHOWN = 12
MIB = 1024 * 1024
MOST_DAYS = 30


def show_storage(context: Context) -> None:
    """Bytes on disk by table."""
    say = context.say
    try:
        found = questions.sizes(context.reader)
    except StoreQueryError as error:
        if error.code not in NO_RIGHT:
            raise
        st.info(say("operations.storage_denied"), icon="🔒")
        return
    if found.empty:
        st.info(say("operations.storage_none"), icon="🔒")
        return
    disk, whole = int(found["bytes_on_disk"].sum()), int(found["uncompressed_bytes"].sum())
    number = st.column_config.NumberColumn
    st.dataframe(
        pd.DataFrame(
            {
                "table": [visible_line(str(name), 80) for name in found["table"]],
                "disk": found["bytes_on_disk"] / MIB,
                "share": found["bytes_on_disk"] / max(disk, 1),
                "rows": found["rows"],
                "bytes_a_row": found["bytes_on_disk"] / found["rows"].clip(lower=1),
                "compression": found["uncompressed_bytes"] / found["bytes_on_disk"].clip(lower=1),
                "parts": found["parts"],
            }
        ),
        hide_index=True,
        height=table_height(len(found), MOST_ROWS_SHOWN),
        column_config={
            "table": say("operations.table"),
            "disk": number(say("operations.disk"), format="%.2f"),
            "share": st.column_config.ProgressColumn(
                say("operations.share"), min_value=0.0, max_value=1.0, format="percent"
            ),
            "rows": number(say("operations.rows"), format="localized"),
            "bytes_a_row": number(say("operations.bytes_a_row"), format="%.0f"),
            "compression": number(say("operations.compression"), format="%.1f×"),
            "parts": number(say("operations.parts"), format="localized"),
        },
    )
    st.caption(
        say(
            "operations.storage_total",
            size=size_words(disk),
            ratio=f"{whole / max(disk, 1):.1f}",
            rows=f"{int(found['rows'].sum()):,}",
            tables=len(found),
        )
    )


def show_cost(context: Context) -> None:
    """Calls, tokens and money of replay by endpoint and day, counted when asked for."""
    say, address = context.say, context.address
    if not context.visitor.shows_text:
        st.info(say("operations.cost_hidden"), icon="🔒")
        return
    columns = st.columns([1, 1, 1], vertical_alignment="bottom")
    is_on = address.toggle(
        columns[0], say("operations.cost_toggle"), "cost", help=say("operations.cost_help")
    )
    prices = {
        name: address.number_input(column, say(f"operations.{name}"), name, least=0.0, step=0.05) or 0.0
        for name, column in zip(("input_price", "output_price"), columns[1:], strict=True)
    }
    if not is_on:
        return
    days = _days(context)
    recipe = find_recipe("replay_cost")
    bound = recipe.bind(
        {
            "experiment": context.series.experiment,
            "days": str(days),
            **{name: f"{price:g}" for name, price in prices.items()},
        }
    )
    found = frame(context.reader, recipe.statement, bound)
    if found.empty:
        st.info(say("operations.cost_none", days=days))
        return
    _calls(context, found)
    total, calls, lost = (found[name].sum() for name in ("cost", "calls", "failed_calls"))
    st.caption(
        f"{say('operations.cost_sum', cost=f'{total:,.4f}', calls=f'{calls:,}', failed=f'{lost:,}')} "
        f"{say('operations.cost_note', days=days)}"
    )
    if "sql" in context.pages:
        given: dict[str, Any] = {f"replay_cost.{name}": value for name, value in bound.items()}
        context.link(
            "sql", say("operations.to_sql"), icon=":material/code:", recipe="replay_cost", run="1", **given
        )


def _calls(context: Context, found: pd.DataFrame) -> None:
    say, number = context.say, st.column_config.NumberColumn
    st.dataframe(
        pd.DataFrame(
            {
                "day": found["day"],
                "endpoint": [visible_line(str(name), 80) for name in found["endpoint_name"]],
                "role": [visible_line(str(name), 40) for name in found["role"]],
                "calls": found["calls"],
                "failed_calls": found["failed_calls"],
                "uncounted": found["uncounted"],
                "prompt_tokens": found["prompt_tokens_sum"],
                "completion_tokens": found["completion_tokens_sum"],
                "busy": found["busy_seconds"],
                "cost_total": found["cost"],
            }
        ),
        hide_index=True,
        height=table_height(len(found), MOST_ROWS_SHOWN),
        column_config={
            **{name: say(f"operations.{name}") for name in ("day", "endpoint", "role")},
            **{
                name: number(say(f"operations.{name}"), format="localized")
                for name in ("calls", "failed_calls", "uncounted", "prompt_tokens", "completion_tokens")
            },
            "busy": number(say("operations.busy"), format="%.1f"),
            "cost_total": number(say("operations.cost_total"), format="%.4f"),
        },
    )


def size_words(size: int) -> str:
    """`3.1 MiB`."""
    power = min(int(math.log(max(size, 1), 1024)), 4)
    return f"{size / 1024**power:,.1f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def _days(context: Context) -> int:
    start = context.window.start
    if start is None:
        return MOST_DAYS
    return max(1, min(MOST_DAYS, math.ceil((utc_now() - start).total_seconds() / 86_400)))
