"""Overview: is it safe to ship?"""

from __future__ import annotations

import streamlit as st

from dashboards.questions import overview as questions
from dashboards.questions import summary
from dashboards.screens.alert_further import slice_words
from dashboards.screens.overview_accounts import show_accounts
from dashboards.screens.overview_figures import show_figures, show_over_time, show_verdicts
from dashboards.screens.overview_verdict import show_verdict
from dashboards.shell.context import Context
from dashboards.shell.figures import known, value
from dashboards.shell.hostile import in_markdown

ICON = ":material/balance:"


def show(context: Context) -> None:
    """The whole page."""
    st.title(context.say("overview.title"))
    _firing(context)
    verdict = show_verdict(context)
    window = (context.window.start, context.window.end)
    figures = summary.summary(context.reader, context.series, *window)
    st.divider()
    if not figures.totals["pairs"]:
        st.info(context.say("shell.nothing"))
    else:
        show_figures(context, figures, summary.quantiles(context.reader, context.series, *window), verdict)
        show_verdicts(context, figures)
        show_over_time(context, figures)
    show_accounts(context)


def _firing(context: Context) -> None:
    """What fires, where nobody can miss it."""
    say = context.say
    found = questions.firing(context.reader, context.series)
    if found.empty:
        return
    count = int(found["count"].iloc[0])
    with st.container(border=True):
        st.error(
            say("overview.firing_one") if count == 1 else say("overview.firing", count=count),
            icon=":material/notifications_active:",
        )
        for _, row in found.iterrows():
            unit = str(row["unit"])
            number = row["value_since"] if unit else row["observed_rate"]
            facts = [
                f"**{say('alerts.' + str(row['severity']))}**",
                in_markdown(str(row["metric"]), 60),
                in_markdown(slice_words(say, row)),
                "" if known(number) is None else value(say, unit or "rate", number),
                say("overview.since", time=context.clock.show(row["fired_at"].to_pydatetime())),
            ]
            context.link(
                "alerts",
                " · ".join(fact for fact in facts if fact),
                icon=":material/notifications_active:",
                alert=row["alert_id"],
            )
        if count > len(found):
            context.link(
                "alerts", say("overview.firing_all", count=count), icon=":material/list:", state=["firing"]
            )
