"""How far two answers agree in the tools that they call.

Calls are held against each other by their order. Everything is conditional on the reference: what it
calls, and whether its arguments are JSON.
"""

from __future__ import annotations

from itertools import zip_longest

from compare.metrics.sides import Sides
from compare.metrics.structure import JsonReading, field_agreement, read_json
from compare.result import Scores
from ingest.observation import ToolCall

_NAMES = ("tool_name_agreement", "tool_arguments_agreement")


def score_tool_calls(sides: Sides, scores: Scores) -> tuple[str, ...]:
    """Put the tool scores and return the paths that differ, such as `tool_calls[0].arguments.city`.

    A call that only one side makes agrees in nothing. Unscored: `no_answer`, `no_tool_call` (neither side
    calls a tool; for the arguments, the reference calls none), and for the arguments `reference_not_json`.
    """
    if not sides.have_answers:
        return _skip(scores, "no_answer", *_NAMES)
    reference, candidate = sides.reference.tool_calls, sides.candidate.tool_calls
    if not reference and not candidate:
        return _skip(scores, "no_tool_call", *_NAMES)
    pairs = list(zip_longest(reference, candidate))
    same = [a is not None and b is not None and a.name == b.name for a, b in pairs]
    scores.put("tool_name_agreement", sum(same) / len(pairs))
    paths = [f"tool_calls[{place}].name" for place, is_same in enumerate(same) if not is_same]
    readings = [_arguments(call) for call in reference]
    if not reference:
        _skip(scores, "no_tool_call", "tool_arguments_agreement")
    elif not all(reading.is_valid for reading in readings):
        _skip(scores, "reference_not_json", "tool_arguments_agreement")
    else:
        shares = []
        for place, reading in enumerate(readings):
            share = 0.0
            if same[place]:
                share, differing = _agreement(reading, _arguments(candidate[place]))
                paths += [f"tool_calls[{place}].arguments{path.removeprefix('$')}" for path in differing]
            shares.append(share)
        scores.put("tool_arguments_agreement", sum(shares) / len(shares))
    return tuple(paths)


def _arguments(call: ToolCall) -> JsonReading:
    """Read a call's arguments; none at all stand for an empty object, as clients take them."""
    return read_json(call.arguments) if call.arguments.strip() else JsonReading(True, {})


def _agreement(reference: JsonReading, candidate: JsonReading) -> tuple[float, tuple[str, ...]]:
    if not candidate.is_valid:
        return 0.0, ("$",)
    return field_agreement(reference.value, candidate.value)


def _skip(scores: Scores, reason: str, *names: str) -> tuple[str, ...]:
    for name in names:
        scores.skip(name, reason)
    return ()
