"""The ship rule's answer on the page: the decision, its bounds beside the margin, and what decided."""

from __future__ import annotations

import shlex
from typing import Any

import pandas as pd
import streamlit as st

from compare.ship.model import ShipVerdict, SliceBound, Support, Terms
from compare.ship.statements import MARKS, served_line
from compare.ship.words import number, percent, signed, whole
from dashboards.charts import overview as charts
from dashboards.charts.drawn import draw
from dashboards.questions import overview as questions
from dashboards.questions.pairs import DIMENSIONS
from dashboards.screens import overview_words as words
from dashboards.screens.table import table_of
from dashboards.shell.context import Context
from dashboards.shell.hostile import in_markdown, visible_line
from dashboards.words import Words

COLOURS: dict[str, Any] = {
    "ship": "green",
    "hold": "orange",
    "need_more": "gray",
    "no_data": "gray",
    "mixed": "gray",
}
MOST_BARS = 8
MOST_DISSENTING = 6
LONGEST = 200
HEADS = ("score", "pairs", "mean", "worst", "floor", "excess", "interval", "requests")


def show_verdict(context: Context) -> ShipVerdict | None:
    """The whole section; the verdict, None where none is kept for so many pairs."""
    say, series = context.say, context.series
    left, right = st.columns(2, gap="large")
    with right:
        margin = context.address.selectbox(
            st.container(),
            say("overview.margin"),
            "margin",
            questions.MARGINS,
            show=percent,
            write=lambda rate: f"{rate:g}",
            default=questions.DEFAULT_MARGIN,
        )
    terms = Terms(margin=margin, since=context.window.start, until=context.window.end)
    verdict = questions.verdict(context.reader, series, terms)
    if verdict is None:
        with left:
            st.info(say("overview.kept_none"))
            st.code(command(context, margin), language=None, wrap_lines=True)
        return None
    with left:
        _decision(context, verdict)
    with right:
        _bounds(context, verdict)
    _dissent(context, verdict)
    if len(verdict.slices) > MOST_BARS and verdict.excess is not None:
        with st.expander(context.say("overview.slices_all", all=len(verdict.slices))):
            st.dataframe(table_of([_slice_cells(say, one) for one in verdict.slices]), hide_index=True)
    with st.expander(say("overview.support")):
        _support(context, verdict)
    return verdict


def command(context: Context, margin: float) -> str:
    """The command that makes a verdict of this series."""
    series = context.series
    parts = ["gnomon", "verdict", "--experiment", series.experiment, "--candidate", series.candidate]
    return visible_line(shlex.join([*parts, "--margin", f"{100 * margin:g}%"]), LONGEST * 2)


def _decision(context: Context, verdict: ShipVerdict) -> None:
    say = context.say
    mark = MARKS[verdict.decision]
    st.header(
        f"{mark} {words.headline(say, verdict)}",
        divider=COLOURS.get(verdict.decision, "gray"),
        anchor="verdict",
    )
    st.markdown(words.bounds(say, verdict))
    if verdict.need is not None:
        st.markdown(words.need_line(say, verdict.need))
    lines = [in_markdown(line, LONGEST * 2) for line in words.reasons(say, verdict)[: MOST_DISSENTING + 3]]
    st.markdown("\n".join(f"- {line}" for line in lines))
    for line in words.warnings(say, verdict):
        st.markdown(f":material/warning: {in_markdown(line, LONGEST * 2)}")
    st.caption(f"{words.counts(say, verdict)}  \n{words.coverage(say, verdict)}")
    if context.series.until is not None:
        st.caption(say("overview.kept", time=context.clock.show(verdict.made_at)))
    elif verdict.terms.since is not None or verdict.terms.until is not None:
        st.caption(say("overview.range_is_chosen"))
    with st.container(horizontal=True):
        for side in ("candidate_only", "reference_only"):
            context.link(
                "pairs",
                say(f"overview.{side}_link", count=whole(getattr(verdict, side))),
                icon=":material/list:",
                side=side,
            )
    if verdict.coverage.left_out:
        with st.expander(say("overview.left_out")):
            st.dataframe(
                pd.DataFrame(
                    {
                        say("overview.left_out_kind"): [one.kind for one in verdict.coverage.left_out],
                        say("overview.left_out_reason"): [
                            visible_line(one.reason, LONGEST) for one in verdict.coverage.left_out
                        ],
                        say("overview.left_out_records"): [one.records for one in verdict.coverage.left_out],
                    }
                ),
                hide_index=True,
            )


def _bounds(context: Context, verdict: ShipVerdict) -> None:
    say, margin = context.say, verdict.terms.margin
    if verdict.excess is None:
        return
    slices = verdict.slices[:MOST_BARS]

    def side_of(low: float, high: float) -> str:
        return "over" if low > margin else "under" if high < margin else "across"

    rows = [
        (say("overview.whole"), verdict.excess, verdict.low, verdict.high, verdict.pairs),
        *(
            (visible_line(words.slice_name(say, one), 40), one.excess, one.low, one.high, one.pairs)
            for one in slices
        ),
    ]
    names = ("slice", "excess", "low", "high", "pairs", "side")
    drawn = [dict(zip(names, (*row, side_of(row[2], row[3])), strict=True)) for row in rows]
    draw(charts.bounds(drawn, margin, say))
    st.caption(say("overview.chart_cut", count=len(slices), all=len(verdict.slices)))


def _slice_cells(say: Words, one: SliceBound) -> dict[str, Any]:
    return {
        say("overview.chart_slice"): visible_line(words.slice_name(say, one), 80),
        say("overview.slices_only", side=say("pair.candidate")): one.candidate_only,
        say("overview.slices_only", side=say("pair.reference")): one.reference_only,
        say("overview.chart_pairs"): one.pairs,
        say("overview.chart_excess"): signed(one.excess),
        say("overview.slices_low"): signed(one.low),
        say("overview.slices_high"): signed(one.high),
        say("overview.slices_hold"): one.is_dissenting,
    }


def _dissent(context: Context, verdict: ShipVerdict) -> None:
    say = context.say
    dissenting = [one for one in verdict.slices if one.is_dissenting]
    if not dissenting:
        return
    st.markdown(f"#### {say('overview.dissent')}")
    for one in dissenting[:MOST_DISSENTING]:
        label = _dissent_label(context, one)
        if one.dimension in DIMENSIONS:
            where: dict[str, Any] = {one.dimension: [one.value]}
            context.link("pairs", label, icon=":material/list:", side="candidate_only", **where)
        else:
            st.markdown(label)
    if len(dissenting) > MOST_DISSENTING:
        st.caption(say("overview.dissent_more", count=len(dissenting) - MOST_DISSENTING))


def _dissent_label(context: Context, one: SliceBound) -> str:
    return context.say(
        "overview.dissent_one",
        name=f"**{in_markdown(words.slice_name(context.say, one), 80)}**",
        candidate_only=whole(one.candidate_only),
        pairs=whole(one.pairs),
        low=signed(one.low),
        high=signed(one.high),
    )


def _support(context: Context, verdict: ShipVerdict) -> None:
    say = context.say
    if verdict.supports:
        cells = [_support_cells(say, one) for one in verdict.supports]
        st.dataframe(
            pd.DataFrame(cells, columns=[say(f"overview.support_{name}") for name in HEADS]), hide_index=True
        )
        st.caption(say("overview.support_note"))
    for validity in verdict.validity:
        noise = say("overview.validity_no_noise")
        if validity.noise_pairs:
            noise = say(
                "overview.validity_noise",
                flips=whole(validity.noise_flips),
                pairs=whole(validity.noise_pairs),
            )
        st.markdown(
            say(
                f"overview.validity_{validity.kind}",
                pairs=whole(validity.pairs),
                candidate=whole(validity.candidate_only_invalid),
                reference=whole(validity.reference_only_invalid),
                noise=noise,
            )
        )
    st.markdown(f"##### {say('overview.served')}")
    if verdict.served:
        st.code(
            "\n".join(visible_line(served_line(one), 600) for one in verdict.served),
            language=None,
            wrap_lines=True,
        )
    else:
        st.caption(say("overview.served_none"))
    if verdict.worst:
        st.markdown(f"##### {say('overview.worst')}")
    for pair in verdict.worst:
        name = in_markdown(pair.request_id, 40) or say("overview.no_id")
        families = in_markdown(", ".join(pair.families), 80)
        context.link(
            "pair",
            f"**{name}** · {families} · {say('overview.severity', number=f'{pair.severity:.2f}')}",
            icon=":material/arrow_forward:",
            topic_id=pair.topic_id,
            partition=pair.partition,
            offset=pair.offset,
        )


def _support_cells(say: Words, support: Support) -> tuple[str, ...]:
    """Under HEADS, in the page's words."""
    unit = "" if support.unit in ("", "flag", "ratio") else f" {support.unit}"
    scores = (
        support.metric,
        whole(support.pairs),
        number(support.mean) + unit,
        number(support.worst_1_percent) + unit,
    )
    floor = support.floor
    if floor is None:
        return (*scores, say("overview.floor_not_measured"), "–", "–", "0")
    within = say("overview.no_interval")
    if floor.low is not None and floor.high is not None:
        within = say("overview.within", low=number(floor.low), high=number(floor.high))
    # A distance of a score where more is better is its negative; as a floor it is shown as the score is.
    return (*scores, number(abs(floor.floor)), number(floor.excess), within, whole(floor.requests))
