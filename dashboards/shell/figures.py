"""Numbers with their unit, in the page's language. A number that is not there says so."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from dashboards.words import Words

_BREAKS = re.compile(r"(?<=[\u2e80-\uffff])(?=.)|(?<=.)(?=[\u2e80-\uffff])")
"""Beside Chinese characters and punctuation."""


def known(number: Any) -> float | None:
    """The number, None for what a frame holds in its place."""
    return None if number is None or pd.isna(number) else float(number)


def unit_of(kind: Any) -> str:
    """The unit in which a detector of this kind counts: the `kind` of `alerts_v1`."""
    return {"bounded_mean": "score", "rank": "rank"}.get(str(kind), "rate")


def value(say: Words, unit: str, number: Any, *, signed: bool = False) -> str:
    """A value of an alert's metric: `unit` is `rate`, `score`, `nats`, `ratio` or `rank`."""
    figure = known(number)
    if figure is None:
        return say("alerts.unknown")
    sign = "+" if signed and unit != "ratio" else ""
    if unit == "rate":
        return f"{figure:{sign}.2%}"
    if unit == "ratio":
        return say("alerts.times", number=f"{figure:.3g}")
    if unit == "nats":
        return f"{figure:{sign}.4g} nats"
    return f"{figure:{sign}.3f}"


def bounds(say: Words, unit: str, low: Any, high: Any, *, signed: bool = False) -> str:
    """`A to B`, empty where there is no interval."""
    if known(low) is None or known(high) is None:
        return ""
    ends = (value(say, unit, end, signed=signed) for end in (low, high))
    return say("alerts.bounds", **dict(zip(("low", "high"), ends, strict=True)))


def p_value(number: Any) -> str:
    """`0.032`, `1.4e-09`; empty where a test has none."""
    figure = known(number)
    return "" if figure is None else f"{figure:.2g}"


def unbroken(text: str) -> str:
    """The text in one line, however narrow its place: Chinese is broken anywhere else."""
    return _BREAKS.sub("\u2060", text.replace(" ", "\u00a0"))
