"""Charts of the overview: the bounds beside the margin, verdicts, faults, and figures over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from dashboards.charts.spec import Spec, field, rows, scale, time, time_tip
from dashboards.shell.palette import CANDIDATE, GOOD, NEUTRAL, PURPLE, REFERENCE, VERDICTS
from dashboards.words import Words

HEIGHT = 210
ROW_PX = 26
LEAST_LABELLED = 0.06
"""A share of the verdict bar that is narrower has no room for its count."""

DARK = frozenset(
    {"candidate_worse", "candidate_error", "reference_worse", "reference_error", "both_error", "match"}
)
"""Verdicts whose colour is read better with white on it."""

_SIDES = {
    "over": (CANDIDATE, "triangle-right"),
    "under": (GOOD, "circle"),
    "across": (NEUTRAL, "square"),
}
"""Beside the margin: the colour and the shape."""


def bounds(slices: Sequence[Mapping[str, Any]], margin: float, say: Words) -> Spec:
    """Each slice's interval as a bar with its excess as a point, the margin as a dashed line.

    `slices`: slice, excess, low, high, pairs, side (`over`, `under` or `across` the margin); the whole first.
    """
    seen = [0.0, margin, slices[0]["low"], slices[0]["high"], *(one["excess"] for one in slices)]
    # The whole and the rates seen set the scale: one slice of three pairs would flatten the rest.
    pad = max(0.15 * (max(seen) - min(seen)), 1e-6)
    left, right = max(min(seen) - pad, -1.0), min(max(seen) + pad, 1.0)
    found = {one["side"] for one in slices}
    signs = {say(f"overview.chart_{side}"): (side, *sign) for side, sign in _SIDES.items() if side in found}
    names = {side: name for name, (side, *_) in signs.items()}
    drawn = [
        {
            **one,
            "side": names[one["side"]],
            **{
                edge: min(max(one[name], left), right)
                for edge, name in (("left", "low"), ("right", "high"), ("at", "excess"))
            },
        }
        for one in slices
    ]
    side = say("overview.chart_side")
    shared = {
        "y": field(
            "slice:N",
            sort=[one["slice"] for one in slices],
            title=None,
            axis={"labelLimit": 160, "labelOverlap": False},
        ),
        "color": field(
            "side:N",
            scale=scale({name: colour for name, (_, colour, _) in signs.items()}),
            legend={"orient": "bottom", "title": side},
        ),
        "tooltip": [
            field("slice:N", title=say("overview.chart_slice")),
            field("excess:Q", title=say("overview.chart_excess"), format="+.3%"),
            field("low:Q", title=say("overview.chart_low"), format="+.3%"),
            field("high:Q", title=say("overview.chart_high"), format="+.3%"),
            field("side:N", title=side),
            field("pairs:Q", title=say("overview.chart_pairs"), format=","),
        ],
    }
    x = field(
        "left:Q",
        title=say("overview.chart_bounds"),
        scale={"domain": [left, right], "nice": False},
        axis={"format": ".2~%"},
    )
    shapes = scale({name: shape for name, (_, _, shape) in signs.items()})
    at = {"x": field("at:Q")}
    zero = {
        "data": rows([{"at": 0.0}]),
        "mark": {"type": "rule", "color": NEUTRAL, "opacity": 0.6},
        "encoding": at,
    }
    intervals = {
        "data": rows(drawn),
        "encoding": shared,
        "layer": [
            {
                "mark": {"type": "bar", "height": 6, "opacity": 0.8},
                "encoding": {"x": x, "x2": {"field": "right"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {**at, "shape": field("side:N", scale=shapes, legend=None)},
            },
        ],
    }
    name = f"{say('overview.chart_margin')} {100 * margin:g} %"
    limit = {
        "data": rows([{"at": margin, "what": name}]),
        "encoding": at,
        "layer": [
            {
                "mark": {"type": "rule", "color": PURPLE, "strokeDash": [5, 4], "strokeWidth": 2},
                "encoding": {"tooltip": field("what:N", title=" ")},
            },
            {
                "mark": {
                    "type": "text",
                    "color": PURPLE,
                    "align": "left",
                    "baseline": "bottom",
                    "dx": 4,
                    "dy": -4,
                },
                "encoding": {"y": {"value": 0}, "text": field("what:N")},
            },
        ],
    }
    return {"layer": [zero, intervals, limit], "height": ROW_PX * len(drawn) + 130}


def verdict_bar(counts: Mapping[str, int], say: Words) -> Spec:
    """One bar, a stretch a verdict, in the order of the palette. `counts`: pairs of each verdict."""
    order = [name for name in VERDICTS if name in counts]
    whole = sum(counts.values())
    shares = [counts[name] / whole for name in order]
    drawn = [
        {
            "verdict": name,
            "pairs": counts[name],
            "place": place,
            "share": share,
            "one": "",
            "label": f"{counts[name]:,}" if share >= LEAST_LABELLED else "",
            "ink": "white" if name in DARK else "black",
            "middle": end - share / 2,
        }
        for place, (name, share, end) in enumerate(zip(order, shares, accumulate(shares), strict=True))
    ]
    bar = {
        "mark": {"type": "bar", "height": 34, "stroke": "white", "strokeWidth": 0.5},
        "encoding": {
            "x": field("share:Q", title=None, axis={"format": "%"}, scale={"domain": [0, 1]}),
            "y": field("one:N", title=None, axis=None),
            "order": field("place:Q"),
            "color": field(
                "verdict:N",
                scale=scale({name: VERDICTS[name] for name in order}),
                sort=order,
                legend={"orient": "bottom", "title": None, "columns": 3},
            ),
            "tooltip": [
                field("verdict:N", title=say("overview.verdicts")),
                field("pairs:Q", title=say("overview.chart_pairs"), format=","),
                field("share:Q", title="%", format=".2%"),
            ],
        },
    }
    text = {
        "mark": {"type": "text", "fontWeight": "bold"},
        "encoding": {
            "x": field("middle:Q"),
            "y": field("one:N", axis=None),
            "text": field("label:N"),
            "color": field("ink:N", scale=None, legend=None),
        },
    }
    height = 80 + 24 * -(-len(order) // 3)
    return {"layer": [{"data": rows(drawn), "layer": [bar, text]}], "height": height}


def fault_bar(counts: Sequence[tuple[str, str, int]], say: Words) -> Spec:
    """Faults on one side only, by family. `counts`: family, side, pairs."""
    found = {side for _, side, _ in counts}
    colours = {
        side: colour
        for side, colour in (("candidate only", CANDIDATE), ("reference only", REFERENCE))
        if side in found
    }
    names = {side: say(f"overview.side_{side}") for side in colours}
    bars = {
        "data": rows(
            {"family": family, "side": names[side], "pairs": pairs} for family, side, pairs in counts
        ),
        "mark": {"type": "bar"},
        "encoding": {
            "x": field("pairs:Q", title=say("overview.chart_pairs"), axis={"tickMinStep": 1}),
            "y": field("family:N", title=None),
            "yOffset": field("side:N", sort=list(names.values())),
            "color": field(
                "side:N",
                scale=scale({names[side]: colour for side, colour in colours.items()}),
                legend={"orient": "bottom", "title": " "},
            ),
            "tooltip": [
                field("family:N", title=say("overview.family")),
                field("side:N", title=say("overview.side")),
                field("pairs:Q", title=say("overview.chart_pairs"), format=","),
            ],
        },
    }
    return {"layer": [bars], "height": 34 * len({family for family, *_ in counts}) + 70}


Line = tuple[str, str, Sequence[float | None], Sequence[int]]


def over_time(
    at: Sequence[str],
    lines: Sequence[Line],
    title: str,
    marks: Sequence[tuple[str, str]],
    zone: str,
    say: Words,
    form: str = ".4f",
) -> Spec:
    """Figures of both sides or kinds over time, with a dashed line where what served changed.

    `at`: a step's time (`wall_texts`). `lines`: name, colour, a value a step and its n; a step without a
    value is left out. `marks`: time and what. `form` is d3's, of the values; `zone` is the times'.
    """
    drawn = [
        {"at": when, "value": value, "n": count, "line": name}
        for name, _, values, counts in lines
        for when, value, count in zip(at, values, counts, strict=True)
        if value is not None
    ]
    found = {one["line"] for one in drawn}
    colours = {name: colour for name, colour, *_ in lines if name in found}
    legend = {"orient": "top", "title": None, "symbolStrokeWidth": 0} if len(colours) > 1 else None
    when = say("overview.axis_time", zone=zone)
    dashes = scale(dict(zip(colours, ([1, 0], [6, 3]), strict=False)))
    shapes = scale(dict(zip(colours, ("circle", "triangle-up"), strict=False)))
    figures = {
        "data": rows(drawn),
        "encoding": {
            "x": time("at", when),
            "y": field(
                "value:Q",
                title=title,
                scale={"zero": True},
                axis={"format": "~%" if "%" in form else ",~f" if "," in form else "~g"},
            ),
            "color": field("line:N", scale=scale(colours), legend=legend),
            "tooltip": [
                time_tip("at", when),
                field("line:N", title=say("overview.tip_line")),
                field("value:Q", title=say("overview.tip_value"), format=form),
                field("n:Q", title=say("overview.tip_pairs"), format=","),
            ],
        },
        "layer": [
            {
                "mark": {"type": "line"},
                "encoding": {"strokeDash": field("line:N", scale=dashes, legend=None)},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 40, "opacity": 1},
                "encoding": {"shape": field("line:N", scale=shapes, legend=legend)},
            },
        ],
    }
    return {"layer": [figures, *([_marks(marks, when, say)] if marks else [])], "height": HEIGHT}


def _marks(marks: Sequence[tuple[str, str]], when: str, say: Words) -> Spec:
    return {
        "data": rows({"at": at, "what": what} for at, what in marks),
        "encoding": {
            "x": field("at:T"),
            "tooltip": [time_tip("at", when), field("what:N", title=say("overview.marks"))],
        },
        "layer": [
            {"mark": {"type": "rule", "color": PURPLE, "strokeDash": [4, 3], "strokeWidth": 2}},
            # Something wider to point at than the line.
            {
                "mark": {
                    "type": "point",
                    "shape": "diamond",
                    "filled": True,
                    "size": 110,
                    "color": PURPLE,
                    "opacity": 1,
                },
                "encoding": {"y": {"value": 6}},
            },
        ],
    }
