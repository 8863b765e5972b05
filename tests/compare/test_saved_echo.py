"""Saved answers that give the prompt back: scores and the first divergence are of what was generated.

Each pair is compared twice: as the server sent it, and with the prompt cut off by hand.
"""

from __future__ import annotations

from typing import Any

import pytest

from compare.inspection import compare_saved
from compare.result import Comparison
from ingest.alternative import Alternative
from ingest.observation import Observation
from ingest.settings import CompareSettings
from ingest.tokens import Token, Tokens

_PROMPT = "Zebra quartz ferries leave at"


def _token(text: str, logprob: float | None, other: tuple[str, float] | None = None) -> Token:
    """A token with its bytes, as `ingest.logprobs` gives them; `other` is listed beside it."""
    listed = [] if logprob is None else [(text, logprob)]
    listed = sorted([*listed, *([] if other is None else [other])], key=lambda one: -one[1])
    top = tuple(Alternative(name, value, name.encode()) for name, value in listed)
    return Token(text, logprob, text.encode(), top=top, ranked=len(top))


_PROMPT_TOKENS = [
    _token("Zebra", None),
    _token(" quartz", -12.5, (" the", -0.4)),
    _token(" ferries", -9.0, (" of", -0.9)),
    _token(" leave", -3.0, (" go", -0.2)),
    _token(" at", -1.0, (" in", -1.5)),
]
_BODY: dict[str, Any] = {"prompt": _PROMPT, "logprobs": 2, "temperature": 0, "max_tokens": 3}
_ECHO = {**_BODY, "echo": True}


_REFERENCE = [
    _token(" noon", -0.1, (" one", -2.5)),
    _token(" every", -0.2, (" on", -2.0)),
    _token(" day", -0.3, (" week", -1.5)),
]
_CANDIDATE = [
    _token(" noon", -0.3, (" one", -1.6)),
    _token(" every", -0.4, (" on", -1.4)),
    _token(" week", -0.5, (" day", -1.2)),
]


def _answer(tokens: list[Token], *, has_prompt: bool = True, bos: bool = False) -> Observation:
    text = "".join(token.text for token in tokens)
    before = ([_token("<s>", None)] if bos else []) + _PROMPT_TOKENS
    return Observation(
        text=_PROMPT + text if has_prompt else text,
        tokens=Tokens(before + tokens if has_prompt else tokens),
        finish_reason="length",
        prompt_tokens=len(before),
        completion_tokens=len(tokens),
    )


def _compare(reference: Observation, candidate: Observation, body: dict[str, Any]) -> Comparison:
    return compare_saved(reference, candidate, body, CompareSettings(embedding_model=""))


@pytest.fixture(scope="module")
def plain() -> Comparison:
    return _compare(_answer(_REFERENCE, has_prompt=False), _answer(_CANDIDATE, has_prompt=False), _BODY)


def test_scores_and_divergence_are_of_the_generated_tokens(plain: Comparison) -> None:
    seen = _compare(_answer(_REFERENCE), _answer(_CANDIDATE), _ECHO)
    assert seen.scores == plain.scores
    assert seen.divergence == plain.divergence
    assert seen.divergence is not None
    assert seen.divergence.position == 2
    assert (seen.divergence.reference_token, seen.divergence.candidate_token) == (" day", " week")
    assert seen.verdict.kind == plain.verdict.kind


def test_a_begin_mark_before_the_prompt_shifts_nothing(plain: Comparison) -> None:
    seen = _compare(_answer(_REFERENCE, bos=True), _answer(_CANDIDATE, bos=True), _ECHO)
    assert seen.divergence == plain.divergence


def test_a_side_that_does_not_echo_is_compared_from_its_beginning(plain: Comparison) -> None:
    seen = _compare(_answer(_REFERENCE), _answer(_CANDIDATE, has_prompt=False), _ECHO)
    assert seen.scores.values == plain.scores.values
    assert seen.divergence == plain.divergence


def test_the_same_answer_with_and_without_its_prompt_is_a_match() -> None:
    seen = _compare(_answer(_REFERENCE), _answer(_REFERENCE, has_prompt=False), _ECHO)
    assert seen.verdict.kind == "match"
    assert seen.divergence is None


def test_a_prompt_of_token_ids_is_told_by_the_counts(plain: Comparison) -> None:
    body = {**_ECHO, "prompt": [5, 17, 99, 4, 8]}
    seen = _compare(_answer(_REFERENCE), _answer(_CANDIDATE), body)
    assert seen.divergence == plain.divergence


def test_without_echo_nothing_is_taken_off() -> None:
    seen = _compare(_answer(_REFERENCE), _answer(_CANDIDATE), _BODY)
    assert seen.divergence is not None
    assert seen.divergence.position == 5 + 2


def test_the_spans_of_findings_stay_those_of_the_whole_answer() -> None:
    looping = Observation(text=_PROMPT + " noon" + " and then some" * 9, finish_reason="length")
    seen = _compare(Observation(text=_PROMPT + " noon.", finish_reason="stop"), looping, _ECHO)
    (loop,) = [one for one in seen.findings if one.code == "loop"]
    assert (loop.start >= len(_PROMPT), loop.end) == (True, len(looping.text))


def test_a_prompt_that_is_only_scored_is_what_is_compared() -> None:
    body = {**_ECHO, "max_tokens": 0}
    other = [*_PROMPT_TOKENS[:4], _token(" at", -1.5, (" in", -1.0))]
    reference, candidate = (
        Observation(text=_PROMPT, tokens=Tokens(tokens), finish_reason="length", completion_tokens=0)
        for tokens in (_PROMPT_TOKENS, other)
    )
    seen = _compare(reference, candidate, body)
    assert seen.scores.values["exact_match"] == 1.0
    assert seen.scores.values["prefix_tokens"] == 5
