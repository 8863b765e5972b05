"""Axes of time: a 24-hour clock in figures that both languages read, whatever stretch is drawn."""

from __future__ import annotations

from typing import Any

FEWEST_STEPS = 3
"""Of fewer hours a line tells nothing: they are said in words."""

# Vega's own labels are a 12-hour clock's, with English names of months.
_LABEL = (
    "timeFormat(datum.value, {year: '%Y', quarter: '%Y-%m', month: '%Y-%m', week: '%m-%d', date: '%m-%d',"
    " hours: '%H:%M', minutes: '%H:%M:%S', seconds: '%H:%M:%S', milliseconds: '%H:%M:%S.%L'})"
)
# The first names the day, below, unless it is a day.
_LABELS = (
    "datum.index == 0 && hours(datum.value) + minutes(datum.value) + seconds(datum.value) > 0"
    f" ? [{_LABEL}, timeFormat(datum.value, '%Y-%m-%d')] : {_LABEL}"
)

AXIS: dict[str, Any] = {"labelExpr": _LABELS, "labelOverlap": True}
"""The axis of a time."""
