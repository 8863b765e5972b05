"""Putting a chart on the page.

Altair, which makes the chart of the columns that a person picks, checks each part of it against Vega-Lite's
schema when it is made, and the whole when it is shown: half of what it takes of a processor. The charts are
our own, and readers go without.
"""

from __future__ import annotations

from typing import Any, cast

import altair as alt
import streamlit as st
from altair.utils import schemapi
from streamlit.delta_generator import DeltaGenerator

from dashboards.charts.spec import Spec

schemapi.disable_debug_mode()


class _Unchecked:
    """The one thing that Streamlit asks of a chart."""

    def __init__(self, chart: alt.Chart) -> None:
        self._chart = chart

    def to_dict(self) -> dict[str, Any]:
        return self._chart.to_dict(validate=False)


def draw(chart: alt.Chart | Spec, place: DeltaGenerator | None = None) -> None:
    """Show the chart here, or at a place of the page."""
    if isinstance(chart, dict):
        (place or st).vega_lite_chart(chart)
    else:
        (place or st).altair_chart(cast(alt.Chart, _Unchecked(chart)))
