"""The truth table of (A and B) or C, against a reading by cases."""

from __future__ import annotations

import itertools
from typing import get_args

import msgspec
import pytest

from compare.rollback.condition import (
    MAX_EVIDENCE_BYTES,
    Condition,
    Conditions,
    State,
    call_for,
    from_json,
    to_json,
)

STATES: tuple[State, ...] = get_args(State)


def by_cases(a: State, b: State, c: State) -> str:
    """Put every truth value in the place of each unknown: known if all of them agree."""
    options = {"firing": (True,), "quiet": (False,), "off": (False,), "unknown": (True, False)}
    answers = {(x and y) or z for x, y, z in itertools.product(options[a], options[b], options[c])}
    return "unknown" if len(answers) == 2 else "yes" if answers.pop() else "no"


@pytest.mark.parametrize(("a", "b", "c"), list(itertools.product(STATES, STATES, STATES)))
def test_the_truth_table(a: State, b: State, c: State) -> None:
    assert call_for(a, b, c) == by_cases(a, b, c)


def test_the_reason_names_what_makes_the_answer() -> None:
    fire = Condition("firing", "x")
    quiet = Condition("quiet", "y")
    assert Conditions(fire, fire, quiet).reason() == "A firing: x; B firing: x"
    assert Conditions(fire, quiet, fire).reason() == "C firing: x"
    assert Conditions(fire, quiet, quiet).reason() == "A firing: x; B quiet: y; C quiet: y"


def test_evidence_comes_back_and_is_bounded() -> None:
    small = Conditions(Condition("firing", "a", {"n": 1}), Condition("quiet", "b"), Condition("off", "c"))
    assert from_json(to_json(small)) == small
    large = Conditions(
        Condition("firing", "a", {"text": "x" * 100_000}),
        Condition("quiet", "b", {"n": 2}),
        Condition("unknown", "c" * 50_000),
    )
    text = to_json(large)
    assert len(text) <= MAX_EVIDENCE_BYTES
    kept = from_json(text)
    assert kept.states == large.states
    assert kept.a == Condition("firing", "a", {"is_cut": True})
    assert kept.b == large.b
    assert large.c.summary.startswith(kept.c.summary) and len(kept.c.summary) > 1000
    assert msgspec.json.decode(text)["A"]["evidence"] == {"is_cut": True}
