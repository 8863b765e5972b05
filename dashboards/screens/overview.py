"""Overview: is it safe to ship?"""

from __future__ import annotations

from datetime import timedelta

import streamlit as st

from dashboards.questions import overview as questions
from dashboards.questions import summary
from dashboards.questions.accounts import lag
from dashboards.screens.alert_further import handled_words, slice_words
from dashboards.screens.overview_accounts import show_accounts
from dashboards.screens.overview_figures import show_figures, show_over_time, show_verdicts
from dashboards.screens.overview_verdict import show_verdict
from dashboards.screens.overview_words import stretch
from dashboards.shell.context import Context, utc_now
from dashboards.shell.figures import known, value
from dashboards.shell.hostile import in_markdown

ICON = ":material/balance:"

OLD = timedelta(hours=1)
SHORT = timedelta(hours=1)
"""So old or of so little time, the figures may say little of what serves now."""


def show(context: Context) -> None:
    """The whole page."""
    reader, series, window = context.reader, context.series, (context.window.start, context.window.end)
    reader.ahead(questions.firing, series)
    reader.ahead(questions.spread, series)
    reader.ahead(summary.summary, series, *window)
    reader.ahead(summary.quantiles, series, *window)
    reader.ahead(questions.served_changes, series)
    reader.ahead(lag, series)
    st.title(context.say("overview.title"))
    _firing(context)
    _age(context)
    verdict = show_verdict(context)
    figures = summary.summary(reader, series, *window)
    st.divider()
    if not figures.totals["pairs"]:
        st.info(context.say("shell.nothing"))
    else:
        show_figures(context, figures, summary.quantiles(reader, series, *window), verdict)
        show_verdicts(context, figures)
        show_over_time(context, figures)
    show_accounts(context)


def _age(context: Context) -> None:
    """How old the newest pair is and what time the pairs span, as a warning where it is old or little."""
    found = questions.spread(context.reader, context.series)
    if found is None or context.window.end is not None:
        return
    say, age, length = context.say, utc_now() - found.last_at, found.last_at - found.first_at
    text = say(
        "overview.age_one" if found.pairs == 1 else "overview.age",
        pairs=f"{found.pairs:,}",
        length=stretch(say, length),
        age=stretch(say, age),
        time=context.clock.show(found.last_at),
    )
    notes = {"old": age > OLD, "short": length < SHORT}
    if any(notes.values()):
        told = [say(f"overview.age_{name}") for name, holds in notes.items() if holds]
        st.warning(" ".join((text, *told)), icon=":material/schedule:")
    else:
        st.caption(text)


def _firing(context: Context) -> None:
    """What fires, where nobody can miss it."""
    say = context.say
    found = questions.firing(context.reader, context.series)
    if found.empty:
        return
    count = int(found["count"].iloc[0])
    with st.container(border=True):
        handled = int(found["handled"].iloc[0])
        text = say("overview.firing_one") if count == 1 else say("overview.firing", count=count)
        if handled:
            text += say("overview.firing_handled", count=handled)
        # Still red, for what fires is not over.
        st.error(text, icon=":material/notifications_active:")
        for _, row in found.iterrows():
            unit = str(row["unit"])
            number = row["value_since"] if unit else row["observed_rate"]
            facts = [
                f"**{say('alerts.' + str(row['severity']))}**",
                in_markdown(str(row["metric"]), 60),
                in_markdown(slice_words(say, row)),
                "" if known(number) is None else value(say, unit or "rate", number),
                say("overview.began", time=context.clock.show(row["began_at"].to_pydatetime())),
                say("overview.fired", time=context.clock.show(row["fired_at"].to_pydatetime())),
                in_markdown(handled_words(context, row)),
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
