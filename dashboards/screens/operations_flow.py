"""Operations: records by outcome, their lag, the partitions and the account of each hour."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboards.charts import operations as charts
from dashboards.charts.drawn import draw
from dashboards.questions import operations as questions
from dashboards.screens.choose import table_height
from dashboards.screens.overview_accounts import accounts
from dashboards.shell.context import Context
from dashboards.shell.hostile import visible_line

MOST_ROWS_SHOWN = 12


def show_throughput(context: Context, records: pd.DataFrame, step: int) -> None:
    """Records a minute by outcome, and why some were not compared."""
    say = context.say
    draw(charts.throughput(records, step, context.clock, say))
    rolled = questions.is_rolled(context.reader, context.series)
    source = say("operations.source_rolled" if rolled else "operations.source_raw")
    st.caption(say("operations.step", minutes=step, source=source))
    others = records[records["kind"] != "compared"]
    if others.empty:
        st.caption(say("operations.why_none"))
    else:
        total = records["records"].sum()
        summed = others.groupby(["kind", "reason"])["records"].sum()
        reasons = summed.sort_values(ascending=False).reset_index()
        with st.expander(say("operations.why_not"), expanded=len(reasons) <= 3):
            st.dataframe(
                pd.DataFrame(
                    {
                        say("operations.outcome"): [
                            say(f"operations.kind_{kind}") for kind in reasons["kind"]
                        ],
                        say("operations.reason"): [visible_line(str(one), 80) for one in reasons["reason"]],
                        say("operations.count"): reasons["records"].to_numpy(),
                        say("operations.share"): (reasons["records"] / total).to_numpy(),
                    }
                ),
                hide_index=True,
                column_config={
                    say("operations.share"): st.column_config.NumberColumn(format="percent"),
                    say("operations.count"): st.column_config.NumberColumn(format="localized"),
                },
            )
    if "sql" in context.pages:
        context.link(
            "sql",
            say("operations.to_sql"),
            icon=":material/code:",
            recipe="records_by_minute",
            run="1",
        )


def show_lag(context: Context, records: pd.DataFrame) -> None:
    """Mean and longest lag of what was compared, and what a lag is."""
    say = context.say
    compared = records[records["kind"] == "compared"]
    if not compared.empty:
        weighted = compared.assign(sum_s=compared["lag_mean_s"] * compared["records"])
        by_step = weighted.groupby("at")
        sums = by_step[["records", "sum_s"]].sum()
        steps = sums.assign(mean=sums["sum_s"] / sums["records"], longest=by_step["lag_max_s"].max())
        draw(charts.lag(steps.reset_index(), context.clock, say))
    st.caption(say("operations.lag_note"))


def show_partitions(context: Context) -> None:
    """What was delivered of each partition, and its lag."""
    say = context.say
    found = questions.partitions(context.reader, context.series)
    if found.empty:
        st.info(say("operations.partitions_none"))
        return
    number = st.column_config.NumberColumn
    st.dataframe(
        pd.DataFrame(
            {
                "topic": [visible_line(str(one), 80) for one in found["topic"]],
                "partition": found["partition"],
                "next_offset": found["next_offset"],
                "delivered": found["records"],
                "lost": found["lost_retention"],
                "last_delivered": context.clock.wall(found["last_at"]),
                "partition_lag": found["lag_mean_s"],
                "partition_lag_max": found["lag_max_s"],
                "partition_pairs": found["pairs"],
                "group": [visible_line(str(one), 80) for one in found["consumer_group"]],
            }
        ),
        hide_index=True,
        height=table_height(len(found), MOST_ROWS_SHOWN),
        column_config={
            **{
                name: number(say(f"operations.{name}"), format="localized")
                for name in ("next_offset", "delivered", "lost", "partition_pairs")
            },
            **{
                name: number(say(f"operations.{name}"), format="%.1f")
                for name in ("partition_lag", "partition_lag_max")
            },
            **{name: say(f"operations.{name}") for name in ("topic", "partition", "group")},
            "last_delivered": st.column_config.DatetimeColumn(
                say("operations.last_delivered", zone=context.clock.name), format="YYYY-MM-DD HH:mm:ss"
            ),
        },
    )
    if len(found) == questions.MOST_PARTITIONS:
        st.caption(say("operations.partitions_capped", most=questions.MOST_PARTITIONS))
    st.caption(say("operations.partition_note"))


def show_hours(context: Context) -> None:
    """The outcomes of each hour, and the sum that must add up."""
    say, window = context.say, context.window
    found = questions.hours(context.reader, context.series, window.start, window.end)
    number = st.column_config.NumberColumn
    st.dataframe(
        found.assign(at=context.clock.wall(found["at"])),
        hide_index=True,
        height=table_height(len(found), MOST_ROWS_SHOWN),
        column_config={
            "at": st.column_config.DatetimeColumn(
                say("operations.hour", zone=context.clock.name), format="YYYY-MM-DD HH:mm"
            ),
            **{kind: number(say(f"operations.kind_{kind}"), format="localized") for kind in questions.KINDS},
            "lag_mean_s": number(say("operations.partition_lag"), format="%.1f"),
            "lag_max_s": number(say("operations.partition_lag_max"), format="%.1f"),
        },
    )
    row = accounts().of(context.reader, context.series).iloc[0]
    names = ("consumed", "compared", "skipped", "failed", "dead_lettered", "stored_ahead", "unaccounted")
    st.caption(
        say(
            "operations.accounting_note",
            most=questions.MOST_HOURS,
            **{name: f"{int(row[name] or 0):,}" for name in names},
        )
    )
