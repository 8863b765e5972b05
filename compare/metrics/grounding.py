"""Whether what an answer extracts stands in the prompt.

An extraction copies; a value that the prompt does not hold is made up, or rewritten. Values that a prompt
cannot hold (a category, a summary) are missing on both sides alike: what tells is the candidate's share
against the reference's.
"""

from __future__ import annotations

import unicodedata
from typing import Any

from compare.detectors.facts import messages_of
from compare.metrics.sides import Sides
from compare.metrics.structure import JsonReading, leaf_values
from compare.metrics.text import numbers_in
from compare.result import Scores

MAX_PROMPT_CHARACTERS = 200_000
"""A prompt is looked through once a value: 200,000 characters take 50 microseconds."""

MAX_VALUES = 500


def score_grounding(
    sides: Sides, readings: tuple[JsonReading | None, JsonReading | None], scores: Scores
) -> None:
    """Put `reference_values_in_prompt` and `candidate_values_in_prompt`.

    `readings` are the two answers as JSON, None where `{side}_is_valid_json` is unscored, whose reason is
    taken over. Else unscored: `not_json`, `no_values` (no text and no number among the leaves), `too_long`.
    """
    prompt: _Prompt | None = None
    for side, reading in zip(("reference", "candidate"), readings, strict=True):
        name = f"{side}_values_in_prompt"
        if reading is None:
            scores.skip(name, scores.unscored[f"{side}_is_valid_json"])
        elif not reading.is_valid:
            scores.skip(name, "not_json")
        else:
            values = [value for value in leaf_values(reading.value) if _is_value(value)]
            prompt = prompt or _Prompt(sides.request)
            if not values:
                scores.skip(name, "no_values")
            elif len(values) > MAX_VALUES or prompt.is_too_long:
                scores.skip(name, "too_long")
            else:
                scores.put(name, sum(map(prompt.holds, values)) / len(values))


class _Prompt:
    """The text of a request, ready to be looked through."""

    def __init__(self, request: dict[str, Any]) -> None:
        text = "\n".join(text for _, text in messages_of(request))
        self.is_too_long = len(text) > MAX_PROMPT_CHARACTERS
        self._plain = "" if self.is_too_long else _plain(text)
        self._numbers = numbers_in(self._plain)

    def holds(self, value: Any) -> bool:
        """Whether a text stands in the prompt, or a number by its value."""
        if isinstance(value, str):
            return _plain(value) in self._plain
        return numbers_in(repr(value)).keys() <= self._numbers.keys()


def _is_value(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(text: str) -> str:
    """Fold width, case and white space: a copied value may differ in those."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
