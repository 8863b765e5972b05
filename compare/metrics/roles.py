"""What part of an answer each token is: JSON syntax, key, value, number, tool name, reasoning or prose.

Roles are read from the text that the tokens make when joined, so that a token's span is exact. Where the
tokens cover the reasoning or a tool call, those are looked up in that text; what lies in no known part,
such as an engine's own markup around a tool call, is `unknown`. A token that reaches into two parts has
the role of what it says rather than of the syntax around it: in `": "x` it is the value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ingest.observation import Observation

ROLES = ("unknown", "syntax", "prose", "value", "key", "number", "tool_name", "reasoning")
"""Every role by code. Of the roles under a token the one with the highest code counts."""

_UNKNOWN, _SYNTAX, _PROSE, _VALUE, _KEY, _NUMBER, _TOOL_NAME, _REASONING = range(len(ROLES))

_JSON_PART = re.compile(
    r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"?+(\s*+:)?|(-?\d[\d.eE+-]*+)|(true|false|null|None|True|False)', re.DOTALL
)
_JSON_ROLES = {
    1: (1, bytes([_VALUE])),
    2: (1, bytes([_KEY])),
    3: (3, bytes([_NUMBER])),
    4: (4, bytes([_VALUE])),
}
"""By the last group that matched: the group that is painted, and its role: value, key, number, value."""
_DIGITS = re.compile(r"\d[\d.,:/-]*\d|\d")
_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)


def roles_of(observation: Observation, count: int | None = None) -> NDArray[np.uint8]:
    """Return (n,) codes of ROLES for the first `count` tokens (all, if not given).

    Empty tokens, such as an end token without text, are `unknown`.
    """
    texts = observation.tokens.texts
    return roles_in(texts, observation)[: len(texts) if count is None else count]


def roles_in(texts: Sequence[str], observation: Observation) -> NDArray[np.uint8]:
    """Return (n,) codes of ROLES for pieces of the answer, laid end to end."""
    joined = "".join(texts)
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    roles = np.zeros(len(texts), dtype=np.uint8)
    full = np.flatnonzero(lengths)
    if len(full):
        painted = np.frombuffer(_painted(joined, observation), dtype=np.uint8)
        starts = np.cumsum(lengths) - lengths
        roles[full] = np.maximum.reduceat(painted, starts[full])
    return roles


def _painted(joined: str, observation: Observation) -> bytearray:
    """Return the role of every character."""
    paint = bytearray(len(joined))
    if joined == observation.text or not (observation.reasoning or observation.tool_calls):
        # The second: bytes that are no character alone are U+FFFD in a token and a character in the text.
        _paint_text(paint, joined, 0, len(joined))
        return paint
    place = _paint_reasoning(paint, joined, observation.reasoning)
    text = observation.text.strip()
    at = joined.find(text, place) if text else -1
    if at >= 0:
        _paint_text(paint, joined, at, at + len(text))
        place = at + len(text)
    elif text and text.startswith(joined[place:].strip()):
        _paint_text(paint, joined, place, len(joined))  # the lists end before the text does
        place = len(joined)
    for call in observation.tool_calls:
        at = joined.find(call.name, place) if call.name else -1
        if at < 0:
            continue
        place = at + len(call.name)
        paint[at:place] = bytes([_TOOL_NAME]) * len(call.name)
        arguments = call.arguments.strip()
        at = joined.find(arguments, place) if arguments else -1
        if at >= 0:
            place = at + len(arguments)
            _paint_json(paint, joined, at, place)
    return paint


def _paint_reasoning(paint: bytearray, joined: str, reasoning: str) -> int:
    """Paint all up to the end of the reasoning, its opening tag too, and return where that is."""
    reasoning = reasoning.strip()
    if not reasoning:
        return 0
    at = joined.find(reasoning)
    if at >= 0:
        end = at + len(reasoning)
    elif reasoning.startswith(joined.strip()):
        end = len(joined)  # the lists end before the reasoning does
    else:
        return 0
    paint[:end] = bytes([_REASONING]) * end
    return end


def _paint_text(paint: bytearray, joined: str, start: int, end: int) -> None:
    text = joined[start:end].lstrip()
    if text[:1] in ("{", "["):
        _paint_json(paint, joined, start, end)
        return
    paint[start:end] = bytes([_PROSE]) * (end - start)
    for match in _DIGITS.finditer(joined, start, end):
        paint[match.start() : match.end()] = bytes([_NUMBER]) * (match.end() - match.start())
    if "```" in text:
        for match in _FENCE.finditer(joined, start, end):
            if match.group(1).lstrip()[:1] in ("{", "["):
                _paint_json(paint, joined, match.start(1), match.end(1))


def _paint_json(paint: bytearray, joined: str, start: int, end: int) -> None:
    """Paint strings, numbers and words; all else, quotes too, is syntax. JSON may be broken or cut."""
    paint[start:end] = bytes([_SYNTAX]) * (end - start)
    for match in _JSON_PART.finditer(joined, start, end):
        group, role = _JSON_ROLES[match.lastindex or 1]
        first, last = match.span(group)
        paint[first:last] = role * (last - first)
