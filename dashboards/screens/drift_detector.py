"""One detector on the page: its state, its hours, and its values before and now with scipy's tests."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import streamlit as st

from compare.alerts.descriptive import LEAST_PAIRS, compare_slices, describe_samples
from compare.alerts.evidence_read import LOOK_BACK, VALUES
from compare.alerts.metrics import BY_NAME, SERIES_FACTOR
from dashboards.asked import Asked
from dashboards.charts import drift as charts
from dashboards.charts.drawn import draw
from dashboards.charts.times import FEWEST_STEPS
from dashboards.questions import drift as questions
from dashboards.questions import drift_samples
from dashboards.questions.drift import Detector, Hours, State
from dashboards.questions.drift_samples import Part, Samples
from dashboards.questions.summary import Series
from dashboards.screens.alert_further import few_hours, slice_words
from dashboards.screens.alert_parts import similar_filters
from dashboards.screens.drift_floor import begin_floor
from dashboards.screens.table import table_of
from dashboards.shell.context import Context
from dashboards.shell.figures import known, p_value, unit_of, value
from dashboards.shell.hostile import in_markdown

MOST_TESTED = 50
"""Slices with the most pairs: a test takes a millisecond."""


def unit_of_values(row: State) -> str:
    """The unit of the detector's values: those of a rank metric are no ranks."""
    if row["kind"] != "rank":
        return unit_of(row["kind"])
    return "ratio" if row["metric"] == "latency_ratio" else "nats"


def begin_detector(context: Context, row: State) -> None:
    """Begin what `show_detector` asks first."""
    reader, series = context.reader, context.series
    reader.ahead(_hours, context, row)
    if row["metric"] in VALUES:
        reader.ahead(_learned, series, row)
        reader.ahead(_began, series, row)


def detector_of(row: State) -> Detector:
    """The detector of a row of `questions.drift.states`."""
    return Detector(str(row["metric"]), str(row["dimension"]), str(row["slice"]))


def show_detector(context: Context, row: State) -> None:
    """Everything about one detector, a row of `questions.drift.states`."""
    say = context.say
    where = in_markdown(slice_words(say, row))
    status = say(f"drift.{row['status']}")
    title = say("drift.headline", status=status, metric=in_markdown(row["metric"]), slice=where)
    st.subheader(title, anchor="detector")
    _state(context, row)
    _links(context, row)
    hours = _hours(context.reader, context, row)
    st.markdown(f"#### {say('drift.over_time')}")
    if not hours:
        st.caption(say("drift.hours_none"))
    elif len(hours) < FEWEST_STEPS:
        st.caption(few_hours(context, hours, row))
    else:
        left, right = st.columns(2)
        draw(charts.by_hour(hours, context.clock, say), left)
        draw(charts.evidence_by_hour(hours, context.clock, say), right)
    # Once more: what it asks next is made of the first answer, which may be there by now.
    begin_floor(context, row)
    if row["metric"] in BY_NAME:
        _distributions(context, row, hours)


def _state(context: Context, row: State) -> None:
    say, unit = context.say, unit_of(row["kind"])
    if row["status"] == "baseline_too_faulty":
        st.warning(say("drift.too_faulty"))
        return
    if known(row["threshold"]) is None:
        st.info(say("drift.no_threshold", pairs=f"{row['baseline_pairs']:,}"))
        return
    is_firing = row["status"] == "firing"
    evidence, observed, baseline, tolerated = st.columns(4)
    evidence.metric(say("drift.evidence"), f"{row['statistic']:,.4g}")
    threshold = f"{row['threshold']:,.0f}"
    evidence.caption(say("drift.evidence_fired" if is_firing else "drift.evidence_of", threshold=threshold))
    if is_firing and known(row["recovery"]) is not None:
        limit = f"{row['threshold'] / SERIES_FACTOR:,.0f}"
        evidence.caption(say("drift.back", back=f"{row['recovery']:,.3g}", limit=limit))
    help_text = say("drift.rank_help") if unit == "rank" else None
    observed.metric(say("drift.observed"), value(say, unit, row["observed"]), help=help_text)
    count = "drift.n_records" if row["metric"] not in VALUES else "drift.n"
    observed.caption(say(count, count=f"{int(known(row['observed_pairs']) or 0):,}"))
    has_baseline = bool(row["baseline_version"])
    baseline.metric(
        say("drift.baseline"),
        value(say, unit, row["baseline"]) if has_baseline else "–",
    )
    baseline.caption(
        say(count, count=f"{row['baseline_pairs']:,}") if has_baseline else say("drift.no_baseline")
    )
    tolerated.metric(say("drift.tolerated"), value(say, unit, row["tolerated"]))
    tolerated.caption(
        say("drift.learned", version=row["baseline_version"]) if has_baseline else say("drift.declared")
    )


def _links(context: Context, row: State) -> None:
    say = context.say
    with st.container(horizontal=True):
        if row["alert_id"]:
            context.link(
                "alerts", say("drift.to_alert"), icon=":material/notifications:", alert=row["alert_id"]
            )
        if row["metric"] in VALUES:
            seen = {**row, "value_before": None}
            context.link(
                "pairs", say("drift.to_pairs"), icon=":material/filter_list:", **similar_filters(seen)
            )


def _distributions(context: Context, row: State, hours: Hours) -> None:
    say = context.say
    st.markdown(f"#### {say('drift.distribution')}")
    way, samples = _samples(context, row, hours)
    names = [say(f"drift.before_{way}"), say("drift.now")]
    unit = unit_of_values(row)
    sides = (
        (names[0], samples.before, samples.before_from, samples.before_to),
        (names[1], samples.now, samples.now_from, samples.now_to),
    )
    for name, sample, start, end in sides:
        if not len(sample) or start is None or end is None:
            st.caption(say("drift.sample_none", name=name))
            continue
        times = {"start": context.clock.show(start), "end": context.clock.show(end)}
        mean = value(say, unit, sample.mean())
        st.caption(say("drift.sample", name=name, count=f"{len(sample):,}", mean=mean, **times))
    if not len(samples.before) or not len(samples.now):
        st.info(say("drift.not_comparable"))
        return
    st.caption(say("drift.sample_bounded", most=f"{drift_samples.MOST:,}"))
    title = f"{row['metric']} ({say(f'drift.unit_{unit}') if unit in ('rate', 'score') else unit})"
    is_ratio = unit == "ratio"
    left, right = st.columns(2)
    drawn = samples.before, samples.now, names, say, title
    draw(charts.distribution(*drawn, is_ratio=is_ratio), left)
    if not charts.is_by_value(samples.before, samples.now):
        draw(charts.ecdf(*drawn, is_ratio=is_ratio), right)
    _tests(context, row, samples, unit)


def _samples(context: Context, row: State, hours: Hours) -> tuple[str, Samples]:
    if row["metric"] not in VALUES:
        return "halves", drift_samples.counted_halves(hours)
    reader, series = context.reader, context.series
    way = context.address.selectbox(
        st.container(width=360),
        context.say("drift.against"),
        "against",
        list(_ways(reader, series, row)),
        show=lambda name: context.say(f"drift.against_{name}"),
    )
    parts = _parts(context, row, hours, way)
    if len(parts) == 1:
        return way, drift_samples.two_halves(reader, series, detector_of(row), *parts)
    for part in parts:
        reader.ahead(drift_samples.last_pairs, series, detector_of(row), part, drift_samples.MOST)
    return way, drift_samples.two_times(reader, series, detector_of(row), *parts)


def _hours(asked: Asked, context: Context, row: State) -> Hours:
    window = context.window
    return questions.hours(asked, context.series, detector_of(row), window.start, window.end)


def _ways(asked: Asked, series: Series, row: State) -> dict[str, Any]:
    """What the newest pairs may be held against, the first being shown first, with what is known of it."""
    known = {"baseline": _learned(asked, series, row), "change": _began(asked, series, row), "halves": True}
    return {name: found for name, found in known.items() if found is not None}


def _parts(context: Context, row: State, hours: Hours, way: str) -> tuple[Part, ...]:
    """The times that are held against each other: before and now, or one that is cut in the middle."""
    reader, window = context.reader, context.window
    whole = questions.hours(reader, context.series, questions.WHOLE, window.start, window.end)
    found = _ways(reader, context.series, row)[way]
    if way == "baseline":
        old = drift_samples.sampled(Part(found["from_at"], found["to_at"]), hours, whole)
        # What it was learned from is not held against itself.
        newer = max(filter(None, (window.start, old.end)), default=None)
        return old, drift_samples.sampled(Part(newer, window.end), hours, whole)
    if way == "change":
        before = drift_samples.sampled(Part(None, found), hours, whole)
        # Without hours from then, no further back than an alert's own evidence looks.
        before = Part(before.start or found - LOOK_BACK, found)
        return before, drift_samples.sampled(Part(found, window.end), hours, whole)
    both = Part(window.start, window.end)
    return (drift_samples.sampled(both, hours, whole, 2 * drift_samples.MOST),)


def _learned(asked: Asked, series: Series, row: State) -> dict[str, Any] | None:
    version = int(row["baseline_version"])
    return questions.baseline(asked, series, str(row["metric"]), version) if version else None


def _began(asked: Asked, series: Series, row: State) -> datetime | None:
    return questions.began(asked, series, str(row["alert_id"])) if row["alert_id"] else None


def _tests(context: Context, row: State, samples: Samples, unit: str) -> None:
    say, kind = context.say, BY_NAME[row["metric"]].kind
    st.markdown(f"#### {say('drift.tests')}")
    st.caption(say("drift.tests_note"))
    left, right = st.columns([2, 3])
    with left:
        st.dataframe(
            table_of(
                [
                    {
                        say("drift.test"): one.name,
                        say("drift.statistic"): f"{one.statistic:.4g}",
                        say("drift.p"): p_value(one.p_value),
                    }
                    for one in describe_samples(kind, samples.before, samples.now)
                ]
            ),
            hide_index=True,
        )
    if not samples.slices:
        return
    with right:
        found = compare_slices(kind, samples.before, samples.now, samples.slices, most=MOST_TESTED)
        if not found:
            st.caption(say("drift.slices_none", least=LEAST_PAIRS))
            return
        # A difference of two ratios is a number, no factor.
        plain = "score" if unit == "ratio" else unit
        rows: list[dict[str, Any]] = [
            {
                say("drift.column_slice"): slice_words(say, {"dimension": one.dimension, "slice": one.slice}),
                say("drift.pairs"): one.pairs,
                say("drift.change"): value(say, plain, one.effect, signed=True),
                say("drift.p"): p_value(one.p_value),
                say("drift.p_adjusted", count=len(found)): p_value(one.p_adjusted),
            }
            for one in found
        ]
        st.dataframe(table_of(rows), hide_index=True)
        st.caption(say("drift.slices_note"))
        if len(found) == MOST_TESTED:
            st.caption(say("drift.slices_most", most=MOST_TESTED))
