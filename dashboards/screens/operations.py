"""Operations: what flows and how far behind, the endpoints, what could not be read, what it all takes."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboards.questions import dead_letters as letters
from dashboards.questions import endpoints as questions
from dashboards.questions import operations as flow
from dashboards.questions import storage
from dashboards.screens.operations_endpoints import Errors, recently, show_endpoints
from dashboards.screens.operations_flow import show_hours, show_lag, show_partitions, show_throughput
from dashboards.screens.operations_letters import show_letters
from dashboards.screens.operations_storage import show_cost, show_storage
from dashboards.screens.section import show_section
from dashboards.shell.context import Context
from dashboards.shell.hostile import in_markdown

ICON = ":material/speed:"


def show(context: Context) -> None:
    """The whole page."""
    say, reader, series, window = context.say, context.reader, context.series, context.window
    reader.ahead(questions.pauses, series)
    reader.ahead(flow.throughput, series, window.start, window.end)
    reader.ahead(flow.partition_lag, series)
    reader.ahead(flow.delivered, series)
    st.title(say("operations.title"))
    _pauses(context)
    # Once more, here and below: what these ask next is made of their first answer, which may be there by now.
    reader.ahead(flow.throughput, series, window.start, window.end)
    reader.ahead(flow.partition_lag, series)
    reader.ahead(questions.failed, series, recently())
    records, step = flow.throughput(reader, series, window.start, window.end)
    reader.ahead(flow.partition_lag, series)
    reader.ahead(questions.endpoints, series)
    reader.ahead(letters.counts, series.experiment, window.start, window.end)
    reader.ahead(questions.orders, series)
    if not records.empty:
        reader.ahead(flow.hours, series, window.start, window.end)
    reader.ahead(storage.sizes)
    st.caption(say("operations.by_ingestion"))
    if records.empty:
        st.info(say("operations.none"))
    else:
        _figures(context, records, step)
        show_section(
            context,
            say("operations.throughput"),
            "throughput",
            lambda context: show_throughput(context, records, step),
        )
        show_section(context, say("operations.lag"), "lag", lambda context: show_lag(context, records))
    show_section(context, say("operations.partitions"), "partitions", show_partitions)
    errors = Errors.of(records)
    show_section(
        context, say("operations.endpoints"), "endpoints", lambda context: show_endpoints(context, errors)
    )
    show_section(context, say("operations.letters"), "dead-letters", show_letters)
    if not records.empty:
        show_section(context, say("operations.accounting"), "accounting", show_hours)
    show_section(context, say("operations.storage"), "storage", show_storage)
    show_section(context, say("operations.cost"), "cost", show_cost)


def _pauses(context: Context) -> None:
    say = context.say
    for _, row in questions.pauses(context.reader, context.series).iterrows():
        why = in_markdown(str(row["why"]))
        st.warning(
            say(
                "operations.paused_one" if row["endpoint"] else "operations.paused_all",
                endpoint=in_markdown(str(row["endpoint"])),
                time=context.clock.show(row["ordered_at"].to_pydatetime()),
                name=in_markdown(str(row["ordered_by"])),
                why=f"“{why}”." if why else "",
            ),
            icon=":material/pause_circle:",
        )


def _figures(context: Context, records: pd.DataFrame, step: int) -> None:
    say = context.say
    total = int(records["records"].sum())
    by_kind = records.groupby("kind")["records"].sum()
    newest = records[records["at"] == records["at"].max()]
    compared = newest[newest["kind"] == "compared"]
    with st.container(horizontal=True):
        st.metric(say("operations.rate"), f"{newest['records'].sum() / step:,.1f}", width="content")
        st.metric(say("operations.records"), f"{total:,}", width="content")
        for name, kind in (("failed_metric", "failed"), ("dead_metric", "dead_letter")):
            count = int(by_kind.get(kind, 0))
            st.metric(
                say(f"operations.{name}"),
                f"{count:,}",
                say("operations.share_of", share=f"{count / total:.2%}", count=f"{total:,}"),
                delta_color="off",
                delta_arrow="off",
                width="content",
            )
        if not compared.empty:
            mean = (compared["lag_mean_s"] * compared["records"]).sum() / compared["records"].sum()
            st.metric(
                say("operations.lag_metric"),
                say("operations.seconds", number=f"{mean:,.1f}"),
                f"n = {int(compared['records'].sum()):,}",
                delta_color="off",
                delta_arrow="off",
                width="content",
            )
