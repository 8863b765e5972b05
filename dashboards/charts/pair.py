"""Charts of one pair."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboards.shell.palette import CANDIDATE, NEUTRAL, REFERENCE
from dashboards.words import Words

HEIGHT = 150


def forced_positions(steps: pd.DataFrame, say: Words) -> alt.VConcatChart:
    """KL, and both sides' log-probability, of each of the reference's own tokens.

    `steps`: position, token, reference_top1, candidate_top1 (shown text), kl_lower_nats, reference_logprob,
    candidate_logprob.
    """
    x = alt.X(
        "position:Q",
        title=say("pair.position"),
        axis=alt.Axis(tickMinStep=1),
        scale=alt.Scale(domain=[-0.5, len(steps) - 0.5], nice=False),
    )
    shapes = alt.Scale(domain=[say("pair.reference"), say("pair.candidate")], range=["circle", "triangle"])
    tooltip = [
        alt.Tooltip("position:Q", title=say("pair.position")),
        alt.Tooltip("token:N", title=say("pair.token")),
        alt.Tooltip("reference_top1:N", title=say("pair.reference_first")),
        alt.Tooltip("candidate_top1:N", title=say("pair.candidate_first")),
        alt.Tooltip("kl_lower_nats:Q", title="KL (nats)", format=".4f"),
        alt.Tooltip("reference_logprob:Q", title=say("pair.reference_logprob"), format=".3f"),
        alt.Tooltip("candidate_logprob:Q", title=say("pair.candidate_logprob"), format=".3f"),
    ]
    kl = (
        alt.Chart(steps)
        .mark_bar(color=NEUTRAL)
        .encode(x=x, y=alt.Y("kl_lower_nats:Q", title=say("pair.kl_axis")), tooltip=tooltip)
        .properties(height=HEIGHT, width="container")
    )
    names = {"reference_logprob": say("pair.reference"), "candidate_logprob": say("pair.candidate")}
    long = steps.melt(
        ["position", "token"], ["reference_logprob", "candidate_logprob"], "side", "logprob"
    ).dropna(subset=["logprob"])
    long["side"] = long["side"].map(names)
    sides = list(names.values())
    logprobs = (
        alt.Chart(long)
        .mark_line(point=alt.OverlayMarkDef(size=36))
        .encode(
            x=x,
            y=alt.Y("logprob:Q", title=say("pair.logprob_axis")),
            color=alt.Color(
                "side:N",
                scale=alt.Scale(domain=sides, range=[REFERENCE, CANDIDATE]),
                legend=alt.Legend(orient="bottom", title=None),
            ),
            shape=alt.Shape("side:N", scale=shapes, legend=None),
            tooltip=[
                alt.Tooltip("position:Q", title=say("pair.position")),
                alt.Tooltip("token:N", title=say("pair.token")),
                alt.Tooltip("side:N", title=say("pair.side")),
                alt.Tooltip("logprob:Q", title=say("pair.logprob_axis"), format=".3f"),
            ],
        )
        .properties(height=HEIGHT, width="container")
    )
    return alt.vconcat(kl, logprobs)
