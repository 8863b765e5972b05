"""Putting a chart on the page.

Altair checks each part of a chart against Vega-Lite's schema when it is made, and the whole when it is shown:
half of what a page of charts takes of a processor. The charts are our own, and readers go without.
"""

from __future__ import annotations

from typing import Any, cast

import altair as alt
import streamlit as st
from altair.utils import schemapi
from streamlit.delta_generator import DeltaGenerator

from dashboards.charts.spec import Spec

Drawn = alt.Chart | alt.LayerChart | alt.VConcatChart

schemapi.disable_debug_mode()


class _Unchecked:
    """The one thing that Streamlit asks of a chart."""

    def __init__(self, chart: Drawn) -> None:
        self._chart = chart

    def to_dict(self) -> dict[str, Any]:
        return self._chart.to_dict(validate=False)


def draw(chart: Drawn | Spec, place: DeltaGenerator | None = None) -> None:
    """Show the chart here, or at a place of the page."""
    if isinstance(chart, dict):
        (place or st).vega_lite_chart(chart)
        return
    unchecked = cast(alt.Chart, _Unchecked(chart))
    if place is None:
        st.altair_chart(unchecked)
    else:
        place.altair_chart(unchecked)
