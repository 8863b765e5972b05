"""One alert on the page: how much, since when, the worst pairs, and what describes it further."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import streamlit as st

from compare.alerts.gather import FLOOR_COLUMNS
from dashboards.questions import alerts as questions
from dashboards.questions.pairs import DIMENSIONS, REGRESSIONS
from dashboards.screens.alert_further import dimension, hours_around, show_further, slice_words
from dashboards.screens.alert_head import decided, no_baseline, show_head
from dashboards.screens.alert_life import show_acts
from dashboards.shell.context import Context, utc_now
from dashboards.shell.figures import bounds, known, unbroken, value
from dashboards.shell.hostile import in_markdown, visible, visible_line
from dashboards.words import Words

ELSEWHERE = {
    "accounting": "operations",
    "no_data": "operations",
    "golden": "golden",
    "rollback": "golden",
}
"""The page that has more of a category."""
RATES = ("regression_rate", "candidate_only_excess")

SHORT_CELL = 10
"""Characters of a cell that is kept in one line."""


def show_alert(context: Context, alert: dict[str, Any]) -> None:
    """Everything known of one alert, a row of `alerts_v1`."""
    say, reader = context.say, context.reader
    reader.ahead(questions.notices, alert)
    if context.visitor.may_act:
        reader.ahead(questions.silences, str(alert["experiment"]), utc_now())
    reader.ahead(questions.worst, context.series, list(alert["worst_pairs"]))
    reader.ahead(hours_around, alert)
    reader.ahead(questions.history, alert)
    reader.ahead(questions.evidence, alert)
    severity, state = say(f"alerts.{alert['severity']}"), say(f"alerts.{alert['state']}")
    where = in_markdown(slice_words(say, alert))
    st.subheader(
        say(
            "alerts.headline",
            state=state,
            severity=severity,
            metric=in_markdown(alert["metric"]),
            slice=where,
        ),
        anchor="alert",
    )
    show_head(context, alert)
    show_acts(context, alert)
    left, right = st.columns(2, gap="medium")
    with left:
        _worst(context, alert)
        _families(context, alert)
    with right:
        _how_much(context, alert)
        _since_when(context, alert)
    show_further(context, alert)


def _how_much(context: Context, alert: Mapping[str, Any]) -> None:
    say, unit = context.say, str(alert["unit"])
    st.markdown(f"#### {say('alerts.how_much')}")
    if why := decided(context, alert):
        st.caption("  \n".join(why))
    if alert["gathered_at"] is None:
        st.info(say("alerts.not_gathered"))
    if alert["gathered_at"] is None or not unit:
        # Such an alert has no numbers: it says in words what is known.
        st.text(visible(str(alert["summary"]), 2_000))
        return
    of_rank = alert["kind"] == "rank"
    tolerated = value(say, "rank" if of_rank else unit, alert["tolerated"])
    instead = no_baseline(context, alert, tolerated)
    rows = [
        (
            say("alerts.before"),
            value(say, unit, alert["value_before"]),
            "",
            pairs_words(say, int(alert["pairs_before"])),
        ),
        (
            say("alerts.now"),
            value(say, unit, alert["value_since"]),
            bounds(say, unit, alert["value_low"], alert["value_high"]),
            pairs_words(say, int(alert["pairs_since_change"])),
        ),
        (
            say("alerts.change"),
            "–" if instead else value(say, unit, alert["effect"], signed=True),
            "" if instead else bounds(say, unit, alert["effect_low"], alert["effect_high"], signed=True),
            "",
        ),
        (
            say("alerts.tolerated"),
            tolerated,
            say("drift.unit_rank") if of_rank else "",
            "",
        ),
        *_floor(say, alert),
    ]
    # Our own words and numbers only.
    head = f"| | | {say('alerts.interval')} | n |"
    lines = [
        f"| **{unbroken(name)}** | {unbroken(number)} | {around} | {_count_cell(count)} |"
        for name, number, around, count in rows
    ]
    st.markdown("\n".join((head, "|---|---|---|---|", *lines)))
    if instead:
        st.caption(instead)
    st.caption(say("alerts.better_end", time=context.clock.show(alert["gathered_at"])))


def _floor(say: Words, alert: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """The noise floor and the excess over it: name, number, interval, and of how many."""
    unit = "score" if alert["unit"] == "ratio" else str(alert["unit"])
    name = say("alerts.floor")
    if known(alert["noise_floor"]) is None:
        has_floor = alert["metric"] in FLOOR_COLUMNS or alert["metric"] in RATES
        why = say("alerts.floor_none" if has_floor else "alerts.floor_no_kind")
        return [(name, say("alerts.not_measured"), why, "")]
    floor, count = value(say, unit, alert["noise_floor"]), int(alert["noise_requests"])
    if alert["metric"] in RATES:
        return [(name, floor, say("alerts.floor_reference"), pairs_words(say, count))]
    asked_twice = say("alerts.n_requests_one" if count == 1 else "alerts.n_requests", count=f"{count:,}")
    found = [(name, floor, "", asked_twice)]
    if known(alert["excess"]) is not None:
        around = bounds(say, unit, alert["excess_low"], alert["excess_high"], signed=True)
        excess = value(say, unit, alert["excess"], signed=True)
        found.append((say("alerts.excess"), excess, around, asked_twice))
    return found


def _count_cell(words: str) -> str:
    return unbroken(words) if len(words) <= SHORT_CELL else words


def pairs_words(say: Words, count: int) -> str:
    """`1 pair`, `2,000 pairs`."""
    return say("alerts.n_one") if count == 1 else say("alerts.n", count=f"{count:,}")


def _worst(context: Context, alert: Mapping[str, Any]) -> None:
    say = context.say
    st.markdown(f"#### {say('alerts.worst')}")
    named = list(alert["worst_pairs"])
    st.caption(say("alerts.worst_order" if named else "alerts.worst_none"))
    found = questions.worst(context.reader, context.series, named)
    for _, pair in found.iterrows():
        context.link(
            "pair",
            _pair_label(say, pair),
            icon=":material/arrow_forward:",
            topic_id=pair["topic_id"],
            partition=pair["partition"],
            offset=pair["offset"],
        )
    if len(found) < len(named):
        st.caption(say("alerts.worst_gone", count=len(named) - len(found)))
    _similar(context, alert)


def _pair_label(say: Words, pair: pd.Series) -> str:
    """Who it is, what is wrong, and where the answers part; short, for a link shows one line."""
    families = ", ".join(map(str, pair["candidate_only_families"]))
    facts = [
        f"**{in_markdown(str(pair['request_id']), 40) or say('alerts.no_id')}**",
        in_markdown(families or str(pair["candidate_failure_kind"] or pair["verdict"]), 40),
    ]
    if known(pair["divergence_position"]) is not None:
        facts.append(say("alerts.token", position=int(pair["divergence_position"])))
    return " · ".join(facts)


def similar_filters(alert: Mapping[Any, Any]) -> dict[str, Any]:
    """The parameters with which the list shows pairs like those of the alert."""
    where: dict[str, Any] = {}
    if alert["dimension"] in DIMENSIONS:
        where[alert["dimension"]] = [alert["slice"]]
    if alert["metric"] == "regression_rate":
        where["verdict"] = REGRESSIONS
    elif alert["metric"] == "candidate_only_excess":
        where["side"] = "candidate_only"
    elif alert["metric"] == "unscored_rate":
        where["verdict"] = ["unscored"]
    elif alert["metric"] == "kl_forced" and known(alert["value_before"]) is not None:
        where["kl_min"] = f"{alert['value_before']:.4g}"
    elif alert["metric"] == "cosine_similarity" and known(alert["value_before"]) is not None:
        where["similarity_max"] = f"{alert['value_before']:.4g}"
    return where


def _similar(context: Context, alert: Mapping[str, Any]) -> None:
    elsewhere = ELSEWHERE.get(alert["category"], "")
    if elsewhere in context.pages:
        context.link(elsewhere, context.say(f"alerts.to_{elsewhere}"), icon=":material/arrow_forward:")
    if alert["category"] not in ("drift", "accounting") or alert["metric"] in ("skipped_rate", "failed_rate"):
        return
    say, where = context.say, similar_filters(alert)
    with st.container(horizontal=True):
        context.link("pairs", say("alerts.similar"), icon=":material/filter_list:", **where)
        since: datetime = alert["change_at"] or alert["started_at"]
        context.link(
            "pairs",
            say("alerts.similar_since"),
            icon=":material/filter_list:",
            **{**where, "window": "fixed", "from": f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"},
        )
    if alert["dimension"] not in ("experiment", *DIMENSIONS):
        st.caption(
            say("alerts.similar_unfiltered", dimension=in_markdown(dimension(say, str(alert["dimension"]))))
        )


def _since_when(context: Context, alert: Mapping[str, Any]) -> None:
    say, clock = context.say, context.clock
    st.markdown(f"#### {say('alerts.when_began')}")
    at, earliest, latest = (alert[f"change{part}_at"] for part in ("", "_earliest", "_latest"))
    if at is None:
        at = alert["started_at"]
    sure = say("alerts.change_own")
    if earliest is not None and latest is not None:
        sure = say("alerts.change_exact")
        if earliest != latest:
            sure = say(
                "alerts.change_between",
                earliest=clock.show(earliest),
                latest=clock.show(latest),
                starts=say(
                    "alerts.starts_one" if alert["change_pairs"] == 1 else "alerts.starts",
                    count=alert["change_pairs"],
                ),
            )
    st.markdown(say("alerts.change_at", time=clock.show(at), sure=sure))
    st.markdown(f"#### {say('alerts.suspected')}")
    for one in alert["served_changes"]:
        role = (
            say(f"alerts.role_{one['role']}")
            if one["role"] in ("candidate", "reference", "production")
            else ""
        )
        name = in_markdown(str(one["endpoint_name"]), 60)
        st.markdown(say("alerts.seen_at", role=role, name=name, time=clock.show(one["seen_at"])))
        st.code(
            "\n".join(
                (
                    say("alerts.told_before", text=visible_line(one["before"], 400)),
                    say("alerts.told_after", text=visible_line(one["after"], 400)),
                )
            ),
            language=None,
            wrap_lines=True,
        )
    if not alert["served_changes"]:
        st.caption(say("alerts.suspected_none"))


def _families(context: Context, alert: Mapping[str, Any]) -> None:
    if not alert["families"]:
        return
    say = context.say
    is_accounting = alert["category"] == "accounting"
    st.markdown(f"#### {say('alerts.reasons' if is_accounting else 'alerts.families')}")
    if is_accounting:
        # The reasons of pairs may quote answers.
        hides = alert["metric"] == "unscored_rate" and not context.reader.shows_text
        for one in alert["families"]:
            name = say("shell.hidden") if hides else visible_line(one["family"], 200)
            st.text(say("alerts.family_link", family=name, pairs=pairs_words(say, int(one["pairs"]))))
        return
    where = {name: given for name, given in similar_filters(alert).items() if name in DIMENSIONS}
    with st.container(horizontal=True):
        for one in alert["families"]:
            context.link(
                "pairs",
                say(
                    "alerts.family_link",
                    family=in_markdown(one["family"], 40),
                    pairs=pairs_words(say, int(one["pairs"])),
                ),
                **{**where, "family": [one["family"]], "side": "candidate_only"},
            )
