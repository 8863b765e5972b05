"""The accounting and the lag: what became of all that was consumed."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboards.questions.accounts import Accounts, lag
from dashboards.shell.context import Context

OUTCOMES = ("compared", "skipped", "failed", "dead_lettered")


@st.cache_resource(show_spinner=False)
def accounts() -> Accounts:
    """One for all sessions."""
    return Accounts()


def show_accounts(context: Context) -> None:
    """Consumed = compared + skipped + failed + dead-lettered, and how far behind it is."""
    say = context.say
    st.subheader(say("overview.accounting"), anchor="accounting")
    row = accounts().of(context.reader, context.series).iloc[0]
    if not int(row["consumed"]):
        st.info(say("overview.accounting_none"))
        return
    behind = lag(context.reader, context.series)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.metric(say("overview.consumed"), f"{int(row['consumed']):,}", width="content")
        for sign, name in zip("=+++", OUTCOMES, strict=True):
            st.markdown(f"### {sign}", width="content")
            st.metric(say(f"overview.{name}"), f"{int(row[name]):,}", width="content")
        st.metric(say("overview.unaccounted"), f"{int(row['unaccounted']):,}", width="content")
        if int(row["lost_retention"]):
            st.metric(say("overview.lost"), f"{int(row['lost_retention']):,}", width="content")
        if behind is not None:
            mean = say("overview.seconds", number=f"{behind['mean_s']:,.1f}")
            st.metric(say("overview.lag"), mean, width="content")
    st.caption(say("overview.accounting_note"))
    if int(row["stored_ahead"]):
        st.caption(say("overview.stored_ahead", count=f"{int(row['stored_ahead']):,}"))
    open_ones = int(row["unaccounted"])
    if open_ones:
        key = "overview.unaccounted_note" if open_ones > 0 else "overview.too_many"
        st.warning(say(key, count=f"{abs(open_ones):,}"))
    if behind is None:
        st.caption(say("overview.lag_none"))
    else:
        most, at = say("overview.seconds", number=f"{behind['max_s']:,.1f}"), pd.Timestamp(behind["last_at"])
        st.caption(
            say(
                "overview.lag_note",
                count=f"{int(behind['records']):,}",
                time=context.clock.show(at.to_pydatetime()),
                most=most,
            )
        )
    if "operations" in context.pages:
        context.link("operations", say("overview.to_operations"), icon=":material/speed:")
