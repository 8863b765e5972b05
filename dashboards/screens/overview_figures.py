"""The overview's figures: each with its n, its noise floor and the pairs behind it, and over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from compare.alerts.binomial import lower_bound, upper_bound
from compare.ship.model import ShipVerdict
from compare.ship.words import percent
from dashboards.charts import overview as charts
from dashboards.charts.drawn import draw
from dashboards.charts.spec import wall_texts
from dashboards.questions import overview as questions
from dashboards.questions.pairs import REGRESSIONS
from dashboards.questions.summary import Summary
from dashboards.shell.context import Context
from dashboards.shell.figures import known
from dashboards.shell.hostile import in_markdown, visible_line
from dashboards.shell.palette import CANDIDATE, REFERENCE, SKY, VERDICTS

ERROR = 0.05
FEW_STEPS = 2


def show_figures(
    context: Context, figures: Summary, quantiles: Mapping[str, float | None], verdict: ShipVerdict | None
) -> None:
    """A card a figure."""
    say = context.say
    st.subheader(say("overview.figures"), anchor="figures")
    places = [place for _ in range(2) for place in st.columns(3)]
    with places[0]:
        _regressions(context, figures.totals)
    with places[1]:
        _kl(context, figures.totals, quantiles, verdict)
    with places[2]:
        _similarity(context, figures.totals, quantiles, verdict)
    with places[3]:
        _schema(context, figures, verdict)
    for place, side in zip(places[4:], ("candidate", "reference"), strict=True):
        with place:
            _latency(context, figures.totals, quantiles, side)
    if context.series.until is not None and (context.window.start or context.window.end):
        st.caption(say("overview.figures_hours"))


def _card(
    context: Context, name: str, value: str, lines: list[str], link: Mapping[str, Any], **more: Any
) -> None:
    """`lines` are our own words and numbers; `link` is `label` and the parameters of the list of pairs."""
    say = context.say
    with st.container(border=True, height="stretch"):
        st.metric(say(f"overview.{name}"), value, **more)
        st.caption("  \n".join(line for line in lines if line))
        where = {key: given for key, given in link.items() if key != "label"}
        context.link("pairs", str(link["label"]), icon=":material/list:", **where)


def _regressions(context: Context, totals: Mapping[str, Any]) -> None:
    say, pairs, count = context.say, totals["pairs"], totals["regressions"]
    low, high = lower_bound(count, pairs, ERROR / 2), upper_bound(count, pairs, ERROR / 2)
    mirror = totals["reference_only_faults"]
    _card(
        context,
        "regressions",
        percent(count / pairs),
        [
            say(
                "overview.regressions_of",
                count=f"{count:,}",
                pairs=f"{pairs:,}",
                low=percent(low),
                high=percent(high),
            ),
            say("overview.regressions_floor", rate=percent(mirror / pairs), count=f"{mirror:,}"),
        ],
        {"label": say("overview.regressions_link", count=f"{count:,}"), "verdict": REGRESSIONS},
        help=say("overview.regressions_help"),
    )


def _kl(
    context: Context,
    totals: Mapping[str, Any],
    quantiles: Mapping[str, float | None],
    verdict: ShipVerdict | None,
) -> None:
    say, mean, p99 = context.say, totals["kl_forced_mean_nats"], quantiles["kl_forced_mean_nats_p99"]
    _card(
        context,
        "kl",
        "–" if mean is None else say("overview.nats", number=f"{mean:.4f}"),
        [
            say("overview.unscored_none") if p99 is None else say("overview.p99", number=f"{p99:.4f}"),
            _n(context, totals["kl_forced_mean_nats_pairs"]),
            _floor(context, verdict, "kl_forced_mean_nats"),
        ],
        {"label": say("overview.kl_link"), "sort": "kl"},
        help=say("overview.kl_help"),
    )


def _similarity(
    context: Context,
    totals: Mapping[str, Any],
    quantiles: Mapping[str, float | None],
    verdict: ShipVerdict | None,
) -> None:
    say, mean, p1 = context.say, totals["edit_similarity"], quantiles["edit_similarity_p1"]
    cosine, count = totals["cosine_similarity"], totals["cosine_similarity_pairs"]
    _card(
        context,
        "similarity",
        "–" if mean is None else f"{mean:.3f}",
        [
            say("overview.unscored_none") if p1 is None else say("overview.p1", number=f"{p1:.3f}"),
            _n(context, totals["edit_similarity_pairs"]),
            _floor(context, verdict, "edit_similarity"),
            "" if cosine is None else say("overview.cosine", number=f"{cosine:.3f}", count=f"{count:,}"),
        ],
        {"label": say("overview.similarity_link"), "sort": "similarity"},
        help=say("overview.similarity_help"),
    )


def _schema(context: Context, figures: Summary, verdict: ShipVerdict | None) -> None:
    say, totals, faults = context.say, figures.totals, figures.faults
    pairs, count = totals["schema_pairs"], totals["schema_regressions"]
    broken = faults[(faults["family"] == "json") & (faults["side"] == "candidate only")]["pairs"].sum()
    floor = say("overview.floor_none" if verdict else "overview.floor_unknown")
    for one in verdict.validity if verdict else ():
        if one.kind == "schema" and one.noise_pairs:
            floor = say("overview.schema_floor", flips=f"{one.noise_flips:,}", pairs=f"{one.noise_pairs:,}")
    _card(
        context,
        "schema",
        percent(count / pairs) if pairs else "–",
        [
            say("overview.schema_of", count=f"{count:,}", pairs=f"{pairs:,}")
            if pairs
            else say("overview.schema_none"),
            floor if pairs else "",
        ],
        {
            "label": say("overview.schema_link", count=f"{broken:,}"),
            "family": ["json"],
            "side": "candidate_only",
        },
        help=say("overview.schema_help"),
    )


def _latency(
    context: Context, totals: Mapping[str, Any], quantiles: Mapping[str, float | None], side: str
) -> None:
    say, name = context.say, f"{side}_total_ms"
    p50, p95, mean = quantiles[f"{name}_p50"], quantiles[f"{name}_p95"], totals[name]
    other = quantiles["reference_total_ms_p50"]
    delta = None
    if side == "candidate" and p50 is not None and other:
        delta = say("overview.latency_delta", number=f"{p50 / other - 1:+.1%}")
    lines = [say("overview.unscored_none")]
    if p95 is not None and mean is not None:
        lines = [
            say("overview.latency_more", p95=_ms(context, p95), mean=_ms(context, mean)),
            _n(context, totals[f"{name}_pairs"]),
        ]
    _card(
        context,
        f"latency_{side}",
        "–" if p50 is None else _ms(context, p50),
        lines,
        {"label": say("overview.latency_link"), "sort": "newest"},
        delta=delta,
        delta_color="inverse",
    )


def _ms(context: Context, number: float) -> str:
    return context.say("overview.ms", number=f"{number:,.0f}")


def _n(context: Context, count: int) -> str:
    return context.say("overview.n_pairs", count=f"{count:,}")


def _floor(context: Context, verdict: ShipVerdict | None, metric: str) -> str:
    """The score of the same endpoint asked twice, as the verdict read it."""
    for one in verdict.supports if verdict else ():
        if one.metric == metric and one.floor is not None:
            # A distance of a score where more is better is its negative.
            number = f"{abs(one.floor.floor):.4g}"
            return context.say("overview.floor", number=number, count=f"{one.floor.requests:,}")
    return context.say("overview.floor_none" if verdict else "overview.floor_unknown")


def show_verdicts(context: Context, figures: Summary) -> None:
    """The verdict bar and the faults of one side, each count a link."""
    say = context.say
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader(say("overview.verdicts"), anchor="verdicts")
        found = dict(zip(figures.verdicts["verdict"], figures.verdicts["pairs"].tolist(), strict=True))
        draw(charts.verdict_bar(found, say))
        st.caption(say("overview.verdicts_note"))
        with st.container(horizontal=True):
            for name in (name for name in VERDICTS if name in found):
                label = say(
                    "overview.verdict_link",
                    verdict=in_markdown(name),
                    count=f"{found[name]:,}",
                    share=percent(found[name] / figures.totals["pairs"]),
                )
                context.link("pairs", label, verdict=[name])
    with right:
        st.subheader(say("overview.faults"), anchor="faults")
        if figures.faults.empty:
            st.caption(say("overview.faults_none"))
            return
        faults = figures.faults
        counts = list(zip(faults["family"], faults["side"], faults["pairs"].tolist(), strict=True))
        draw(charts.fault_bar(counts, say))
        st.caption(say("overview.faults_note"))
        with st.container(horizontal=True):
            for name, side, pairs in counts:
                if side == "candidate only":
                    label = say("overview.fault_link", family=in_markdown(name), count=f"{pairs:,}")
                    context.link("pairs", label, family=[name], side="candidate_only")


def show_over_time(context: Context, figures: Summary) -> None:
    """The figures by steps of time, with a line where what served changed."""
    say, steps = context.say, figures.steps
    st.subheader(say("overview.over_time"), anchor="over-time")
    marks = _marks(context, steps["at"])
    drawn = (
        ("regressions", ".2%", [("regression_rate", "pairs", "line_regressions", CANDIDATE)]),
        ("kl", ".4f", [("kl_forced_mean_nats", "kl_forced_mean_nats_pairs", "line_kl", CANDIDATE)]),
        (
            "similarity",
            ".3f",
            [
                ("edit_similarity", "edit_similarity_pairs", "line_edit", CANDIDATE),
                ("cosine_similarity", "cosine_similarity_pairs", "line_cosine", SKY),
            ],
        ),
        ("schema", ".2%", [("schema_lost_rate", "schema_pairs", "line_schema", CANDIDATE)]),
        (
            "latency",
            ",.0f",
            [
                ("candidate_total_ms", "candidate_total_ms_pairs", "line_candidate", CANDIDATE),
                ("reference_total_ms", "reference_total_ms_pairs", "line_reference", REFERENCE),
            ],
        ),
    )
    at = wall_texts(context.clock, steps["at"])
    places = [place for _ in range(0, len(drawn), 2) for place in st.columns(2, gap="large")]
    for place, (name, form, lines) in zip(places, drawn, strict=False):
        title = say(f"overview.axis_{name}")
        named = [
            (say(f"overview.{key}"), colour, list(map(known, steps[column])), steps[count].tolist())
            for column, count, key, colour in lines
        ]
        with place:
            if not any(value is not None for _, _, values, _ in named for value in values):
                st.caption(say("overview.chart_none", what=title))
                continue
            draw(charts.over_time(at, named, title, marks, context.clock.name, say, form))
    if marks:
        st.caption(say("overview.over_time_note"))


def _marks(context: Context, times: pd.Series) -> list[tuple[str, str]]:
    """The changes of what served among these steps: when, as a chart has it, and what."""
    say = context.say
    # An endpoint is asked every five minutes, so its change is seen a little after the first of its pairs.
    length = times.iloc[1] - times.iloc[0] if len(times) >= FEW_STEPS else pd.Timedelta(hours=1)
    first, last = times.min(), times.max() + length
    changes = [
        one
        for one in questions.served_changes(context.reader, context.series)
        if first <= one.seen_at <= last
    ]
    texts = [
        visible_line(
            say(
                "overview.mark_line",
                role=say(f"alerts.role_{one.role}"),
                name=one.endpoint_name,
                before=one.before,
                after=one.after,
            ),
            600,
        )
        for one in changes
    ]
    return list(zip(wall_texts(context.clock, [one.seen_at for one in changes]), texts, strict=True))
