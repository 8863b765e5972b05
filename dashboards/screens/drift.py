"""Drift: how close each detector is to an alarm, and what its values look like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from compare.alerts.metrics import DIMENSIONS
from dashboards.questions import drift as questions
from dashboards.questions.drift import State
from dashboards.screens.alert_further import dimension, slice_words
from dashboards.screens.choose import choose_row
from dashboards.screens.drift_detector import begin_detector, detector_of, show_detector
from dashboards.screens.drift_floor import begin_floor, show_floor
from dashboards.screens.table import table_of
from dashboards.shell.context import Context
from dashboards.shell.figures import unit_of
from dashboards.shell.hostile import in_markdown, visible_line
from dashboards.words import Words

ICON = ":material/trending_up:"

MOST_ROWS_SHOWN = 10


def show(context: Context) -> None:
    """The whole page."""
    say, reader, series, window = context.say, context.reader, context.series, context.window
    reader.ahead(questions.states, series, window.start, window.end)
    reader.ahead(questions.hours, series, questions.WHOLE, window.start, window.end)
    st.title(say("drift.title"))
    found = questions.states(reader, series, window.start, window.end)
    if not found:
        st.info(say("drift.none"))
        return
    for row in questions.refused(found):
        st.warning(
            say("drift.refused", pairs=f"{row['pairs_folded']:,}", dimension=in_markdown(row["dimension"]))
        )
    detectors = [row for row in found if row["status"] in questions.STATUSES]
    counts = Counter(row["status"] for row in detectors)
    with st.container(horizontal=True):
        for status in questions.STATUSES:
            if status in counts or status in questions.STATUSES[:3]:
                st.metric(say(f"drift.{status}"), f"{counts[status]:,}", width="content")
    st.caption(say("drift.explain"))
    chosen = _chosen(context, _filtered(context, detectors), detectors)
    if chosen is not None:
        begin_detector(context, chosen)
        begin_floor(context, chosen)
        st.divider()
        show_detector(context, chosen)
    st.divider()
    show_floor(context, detectors, chosen)


def _filtered(context: Context, detectors: list[State]) -> list[State]:
    say, address = context.say, context.address
    shown = detectors
    for place, name, options in zip(
        st.columns(3),
        ("metric", "status", "dimension"),
        (sorted({row["metric"] for row in detectors}), questions.STATUSES, DIMENSIONS),
        strict=True,
    ):
        chosen = address.multiselect(
            place, say(f"drift.{name}"), name, options, show=partial(_option, say, name)
        )
        shown = [row for row in shown if row[name] in chosen] if chosen else shown
    if not shown:
        st.info(say("drift.no_match"))
    return shown


def _option(say: Words, name: str, option: str) -> str:
    if name == "status":
        return say(f"drift.{option}")
    return dimension(say, option) if name == "dimension" else option


def _chosen(context: Context, shown: list[State], detectors: list[State]) -> State | None:
    """The table; the detector that was chosen, or the first."""
    say = context.say
    all_keys = [str(detector_of(row)) for row in detectors]
    asked = context.address.one_of("detector", all_keys)
    if shown:
        table = table_of([_row(say, row) for row in shown], with_empty=False)
        keys = all_keys if shown is detectors else [str(detector_of(row)) for row in shown]
        asked = choose_row(
            table, keys, asked or keys[0], "drift", rows=MOST_ROWS_SHOWN, columns=_columns(say)
        )
        st.caption(f"{say('drift.choose')} {say('drift.observed_days', days=questions.OBSERVED_DAYS)}")
        if len(detectors) >= questions.MOST_SERIES:
            st.caption(say("drift.capped", most=questions.MOST_SERIES))
    if not asked:
        return None
    context.address.keep("detector", asked)
    return detectors[all_keys.index(asked)]


def _row(say: Words, row: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        "state": say(f"drift.{row['status']}"),
        "metric": visible_line(str(row["metric"]), 60),
        "slice": slice_words(say, row),
        "evidence": row["evidence"],
        "share": row["share"],
        "observed": row["observed"],
        "n": row["observed_pairs"],
        "baseline": row["baseline"] if row["baseline_version"] else None,
        "baseline_n": row["baseline_pairs"] or None,
        "tolerated": row["tolerated"],
        "unit": say(f"drift.unit_{unit_of(row['kind'])}"),
        "back": row["way_back"],
    }


def _columns(say: Words) -> dict[str, Any]:
    def bar(name: str) -> Any:
        return st.column_config.ProgressColumn(
            say(f"drift.column_{name}"), min_value=0.0, max_value=1.0, format="percent"
        )

    numbers = {
        name: st.column_config.NumberColumn(say(f"drift.column_{name}"), format=form)
        for name, form in (
            ("share", "%.3g"),
            ("observed", "%.4f"),
            ("n", "localized"),
            ("baseline", "%.4f"),
            ("baseline_n", "localized"),
            ("tolerated", "%.4f"),
        )
    }
    return {
        **{name: say(f"drift.column_{name}") for name in ("state", "metric", "slice", "unit")},
        **numbers,
        "evidence": bar("evidence"),
        "back": bar("back"),
    }
