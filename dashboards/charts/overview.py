"""Charts of the explorer. Colours are from the Okabe-Ito palette, which the colour-blind can tell apart."""

from __future__ import annotations

import altair as alt
import pandas as pd

REFERENCE = "#0072B2"
CANDIDATE = "#D55E00"
GOOD = "#009E73"
NEUTRAL = "#999999"
WARN = "#E69F00"

VERDICT_COLOURS = {
    "match": GOOD,
    "equivalent": "#56B4E9",
    "diverged": WARN,
    "candidate_worse": CANDIDATE,
    "candidate_error": "#8B3A00",
    "reference_worse": REFERENCE,
    "reference_error": "#00476B",
    "both_faulty": "#CC79A7",
    "both_error": "#6B3A56",
    "unscored": NEUTRAL,
}


def verdict_bar(counts: pd.DataFrame) -> alt.Chart:
    """One bar a verdict. `counts`: verdict, pairs."""
    order = [name for name in VERDICT_COLOURS if name in set(counts["verdict"])]
    chart: alt.Chart = (
        alt.Chart(counts)
        .mark_bar()
        .encode(
            x=alt.X("pairs:Q", title="pairs", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y("verdict:N", sort=order, title=None),
            color=alt.Color(
                "verdict:N",
                scale=alt.Scale(domain=order, range=[VERDICT_COLOURS[name] for name in order]),
                legend=None,
            ),
            tooltip=["verdict", "pairs"],
        )
        .properties(height=36 * max(len(order), 2) + 60)
    )
    return chart


def fault_bar(counts: pd.DataFrame) -> alt.Chart:
    """Faults on one side only, by family. `counts`: family, side, pairs."""
    chart: alt.Chart = (
        alt.Chart(counts)
        .mark_bar()
        .encode(
            x=alt.X("pairs:Q", title="pairs", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y("family:N", title=None),
            yOffset="side:N",
            color=alt.Color(
                "side:N",
                scale=alt.Scale(domain=["candidate only", "reference only"], range=[CANDIDATE, REFERENCE]),
                legend=alt.Legend(orient="bottom", title=None),
            ),
            tooltip=["family", "side", "pairs"],
        )
        .properties(height=44 * max(counts["family"].nunique(), 2) + 110)
    )
    return chart


def over_time(steps: pd.DataFrame, column: str, title: str, colour: str = CANDIDATE) -> alt.Chart:
    """One number over time. `steps`: at (UTC), pairs and `column`; steps without a value are left out."""
    known = steps.dropna(subset=[column])
    chart: alt.Chart = (
        alt.Chart(known)
        .mark_line(point=True, color=colour)
        .encode(
            x=alt.X(
                "at:T", title="time (UTC)", scale=alt.Scale(type="utc"), axis=alt.Axis(format="%H:%M:%S")
            ),
            y=alt.Y(f"{column}:Q", title=title, scale=alt.Scale(zero=True)),
            tooltip=[
                alt.Tooltip("utchoursminutesseconds(at):T", title="time"),
                alt.Tooltip(f"{column}:Q", format=".4f"),
                "pairs:Q",
            ],
        )
        .properties(height=260)
    )
    return chart


def by_position(positions: pd.DataFrame) -> alt.Chart:
    """KL and both entropies along the common prefix of one pair."""
    names = {
        "kl_lower_nats": "KL (least)",
        "reference_entropy_lower_nats": "entropy, reference",
        "candidate_entropy_lower_nats": "entropy, candidate",
    }
    long = positions.rename(columns=names).melt("position", list(names.values()), "number", "nats").dropna()
    chart: alt.Chart = (
        alt.Chart(long)
        .mark_line(point=True)
        .encode(
            x=alt.X("position:Q", title="token", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y("nats:Q", title="nats"),
            color=alt.Color(
                "number:N",
                scale=alt.Scale(domain=list(names.values()), range=["#000000", REFERENCE, CANDIDATE]),
                legend=alt.Legend(orient="bottom", title=None),
            ),
            tooltip=["position", "number", alt.Tooltip("nats:Q", format=".4f")],
        )
        .properties(height=260)
    )
    return chart
