"""Charts of one pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.charts.spec import Spec, field, rows, scale
from dashboards.shell.palette import CANDIDATE, NEUTRAL, REFERENCE
from dashboards.words import Words

HEIGHT = 150


def forced_positions(steps: Sequence[Mapping[str, Any]], say: Words) -> Spec:
    """KL, and both sides' log-probability, of each of the reference's own tokens.

    `steps`: position, token, reference_top1, candidate_top1 (shown text), kl_lower_nats, reference_logprob,
    candidate_logprob; a number may be None.
    """
    x = field(
        "position:Q",
        title=say("pair.position"),
        axis={"tickMinStep": 1},
        scale={"domain": [-0.5, len(steps) - 0.5], "nice": False},
    )
    kl = {
        "data": rows(map(dict, steps)),
        "mark": {"type": "bar", "color": NEUTRAL},
        "encoding": {
            "x": x,
            "y": field("kl_lower_nats:Q", title=say("pair.kl_axis")),
            "tooltip": [
                field("position:Q", title=say("pair.position")),
                field("token:N", title=say("pair.token")),
                field("reference_top1:N", title=say("pair.reference_first")),
                field("candidate_top1:N", title=say("pair.candidate_first")),
                field("kl_lower_nats:Q", title="KL (nats)", format=".4f"),
                field("reference_logprob:Q", title=say("pair.reference_logprob"), format=".3f"),
                field("candidate_logprob:Q", title=say("pair.candidate_logprob"), format=".3f"),
            ],
        },
        "height": HEIGHT,
        "width": "container",
    }
    sides = {role: say(f"pair.{role}") for role in ("reference", "candidate")}
    long = [
        {"position": one["position"], "token": one["token"], "side": name, "logprob": number}
        for role, name in sides.items()
        for one in steps
        if (number := one[f"{role}_logprob"]) is not None
    ]
    names = list(sides.values())
    logprobs = {
        "data": rows(long),
        "mark": {"type": "line", "point": {"size": 36}},
        "encoding": {
            "x": x,
            "y": field("logprob:Q", title=say("pair.logprob_axis")),
            "color": field(
                "side:N",
                scale=scale(dict(zip(names, (REFERENCE, CANDIDATE), strict=True))),
                legend={"orient": "bottom", "title": None},
            ),
            "shape": field(
                "side:N", scale=scale(dict(zip(names, ("circle", "triangle"), strict=True))), legend=None
            ),
            "tooltip": [
                field("position:Q", title=say("pair.position")),
                field("token:N", title=say("pair.token")),
                field("side:N", title=say("pair.side")),
                field("logprob:Q", title=say("pair.logprob_axis"), format=".3f"),
            ],
        },
        "height": HEIGHT,
        "width": "container",
    }
    return {"vconcat": [kl, logprobs]}
