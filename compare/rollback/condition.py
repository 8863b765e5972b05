"""A condition as it stands at one evaluation, and what the three of them say together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

State = Literal["firing", "quiet", "unknown", "off"]
"""`unknown`: nothing can be said now; the summary says why. `off`: nothing of it is set up or there."""
Says = Literal["yes", "no", "unknown"]
LETTERS = ("A", "B", "C")
MAX_EVIDENCE_BYTES = 16 * 1024


class Condition(msgspec.Struct, frozen=True):
    """One condition. `evidence` is plain JSON, of numbers and short texts only: never a word of traffic."""

    state: State
    summary: str
    evidence: dict[str, Any] = {}


class Conditions(msgspec.Struct, frozen=True):
    """The three conditions of one candidate at one evaluation."""

    a: Condition
    b: Condition
    c: Condition

    @property
    def states(self) -> tuple[State, State, State]:
        """Of A, B and C."""
        return self.a.state, self.b.state, self.c.state

    def items(self) -> tuple[tuple[str, Condition], ...]:
        """(letter, condition), in order."""
        return tuple(zip(LETTERS, (self.a, self.b, self.c), strict=True))

    def says(self) -> Says:
        """What `(A and B) or C` comes to."""
        return call_for(*self.states)

    def reason(self) -> str:
        """Return the summaries of what makes up the answer, in one line."""
        parts = [("A", self.a), ("B", self.b), ("C", self.c)]
        says = self.says()
        if says == "yes":
            is_ab = self.a.state == self.b.state == "firing"
            parts = [one for one in parts if one[1].state == "firing" and (is_ab or one[0] == "C")]
        return "; ".join(f"{letter} {one.state}: {one.summary}" for letter, one in parts)


def call_for(a: State, b: State, c: State) -> Says:
    """`(A and B) or C` in the three-valued logic of Kleene (1938).

    `off` is false. The unknown decides only where no known one does: with C firing it is yes whatever A is,
    with C quiet and B quiet no whatever A is.
    """
    both = min(_TRUTH[a], _TRUTH[b])
    return _SAYS[max(both, _TRUTH[c])]


_TRUTH: dict[State, int] = {"firing": 2, "unknown": 1, "quiet": 0, "off": 0}
_SAYS: tuple[Says, Says, Says] = ("no", "unknown", "yes")


def to_json(conditions: Conditions) -> str:
    """Return the conditions as JSON of at most `MAX_EVIDENCE_BYTES`.

    What is longer loses the evidence of the longest condition first, never a state or a summary.
    """
    parts = {letter: msgspec.to_builtins(one) for letter, one in conditions.items()}
    text = msgspec.json.encode(parts)
    while len(text) > MAX_EVIDENCE_BYTES:
        longest = max(parts, key=lambda letter: len(msgspec.json.encode(parts[letter])))
        if parts[longest]["evidence"] == {"is_cut": True}:
            parts[longest]["summary"] = parts[longest]["summary"][: MAX_EVIDENCE_BYTES // 8]
        parts[longest]["evidence"] = {"is_cut": True}
        text = msgspec.json.encode(parts)
    return text.decode()


def from_json(text: str) -> Conditions:
    """Return what `to_json` wrote."""
    found: Mapping[str, Condition] = msgspec.json.decode(text, type=dict[str, Condition])
    return Conditions(*(found[letter] for letter in LETTERS))
