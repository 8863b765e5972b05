"""What stands at the top of an alert: its times, who was told, and what decided it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from compare.alerts.describe import CRITICAL_MULTIPLE
from compare.alerts.evidence import FEW_BEFORE
from dashboards.questions import alerts as questions
from dashboards.shell.context import Context
from dashboards.shell.figures import unit_of, value
from dashboards.shell.hostile import in_markdown

DETECTED = ("drift", "accounting")
"""Categories whose alerts a detector raises, at a pair."""


def show_head(context: Context, alert: Mapping[str, Any]) -> None:
    """The lines under an alert's headline."""
    st.caption(f"{life(context, alert)} · {_ids(context, alert)}")
    st.markdown(told(context, alert))


def life(context: Context, alert: Mapping[str, Any]) -> str:
    """When it began, fired, was noticed and resolved."""
    say, clock = context.say, context.clock
    parts = [say("alerts.life_began", time=clock.show(alert["change_at"] or alert["started_at"]))]
    own = "alerts.life_fired_pair" if alert["category"] in DETECTED else "alerts.life_fired"
    parts.append(say(own, time=clock.show(alert["fired_at"])))
    parts.append(say("alerts.life_noticed", time=clock.show(alert["raised_at"])))
    if alert["resolved_at"] is not None:
        parts.append(say("alerts.life_over", time=clock.show(alert["resolved_at"])))
    return " · ".join(parts)


def decided(context: Context, alert: Mapping[str, Any]) -> list[str]:
    """What raised the alarm, and why it is critical; nothing for what no detector raised."""
    if alert["category"] not in DETECTED:
        return []
    say = context.say
    unit = unit_of(alert["kind"])
    learned, tolerated = bool(alert["baseline_version"]), value(say, unit, alert["tolerated"])
    found = [
        say(
            "alerts.decided_learned" if learned else "alerts.decided_declared",
            tolerated=tolerated,
            version=alert["baseline_version"],
        )
    ]
    # What is stored of a resolved one is the evidence at its end.
    if alert["resolved_at"] is None:
        found[0] = " ".join(
            (
                say(
                    "alerts.evidence_line",
                    statistic=f"{alert['statistic']:,.0f}",
                    threshold=f"{alert['threshold']:,.0f}",
                    pairs=f"{alert['pairs_folded']:,}",
                ),
                found[0],
            )
        )
    if alert["severity"] == "critical":
        found.append(say("alerts.decided_critical", multiple=f"{CRITICAL_MULTIPLE:g}"))
    return found


def no_baseline(context: Context, alert: Mapping[str, Any], tolerated: str) -> str:
    """What was used in the place of pairs from before; empty where there are enough of them."""
    if alert["category"] not in DETECTED or alert["pairs_before"] >= FEW_BEFORE:
        return ""
    key = "alerts.own_none_learned" if alert["baseline_version"] else "alerts.own_none"
    return context.say(key, tolerated=tolerated, least=FEW_BEFORE)


def told(context: Context, alert: Mapping[str, Any]) -> str:
    """Which sinks were told of the alert's group, in Markdown."""
    say, notices = context.say, questions.notices(context.reader, alert)
    tried = notices[notices["sink"] != ""] if not notices.empty else notices
    if tried.empty:
        key = "alerts.told_no_notice" if notices.empty else "alerts.told_nobody"
        return f":material/notifications_off: {say(key)}"
    parts = []
    for sink, rows in tried.groupby("sink"):
        newest = rows.iloc[0]
        key = "alerts.told_sink" if newest["is_delivered"] else "alerts.told_failed"
        at = context.clock.show(newest["attempted_at"].to_pydatetime(), seconds=False)
        parts.append(say(key, sink=in_markdown(str(sink), 60), time=at))
    return f":material/campaign: {say('alerts.told', sinks=', '.join(parts))}"


def _ids(context: Context, alert: Mapping[str, Any]) -> str:
    return context.say("alerts.ids", alert=alert["alert_id"][:8], group=alert["group_key"][:8])
