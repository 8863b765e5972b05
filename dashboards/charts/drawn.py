"""Putting a chart on the page."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboards.charts.spec import Spec


def draw(chart: Spec, place: DeltaGenerator | None = None) -> None:
    """Show the chart here, or at a place of the page."""
    (place or st).vega_lite_chart(chart)
