"""Detectors reckon with an answer's columns: what they show is exact, and no token is made for it."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.detect import detect
from compare.detectors.entropy_runs import common_prefix
from compare.detectors.facts import words_of
from compare.detectors.scripts import letters_by_script
from compare.detectors.subject import Subject
from compare.detectors.top_lists import TopLists
from ingest.alternative import Alternative
from ingest.observation import Observation
from ingest.tokens import Token, Tokens
from tests.compare.detectors.helpers import SETTINGS, found, subject, token


def same_token(a: Token, b: Token) -> bool | None:
    """By id, else by bytes; None where neither can tell (design, section 5)."""
    if a.id is not None and b.id is not None:
        return a.id == b.id
    return a.raw == b.raw if a.raw is not None and b.raw is not None else None


_LOGPROBS = st.one_of(st.just(-math.inf), st.floats(-60.0, 2.0), st.sampled_from([-9999.0, 0.0]))
_LISTS = st.lists(st.lists(_LOGPROBS, max_size=5), max_size=12)


class Sealed(Tokens):
    """Tokens that tell numbers and texts, and fail whoever wants an object of them."""

    def __getitem__(self, index: Any) -> NoReturn:
        raise AssertionError(f"token {index} was asked for")

    def __iter__(self) -> Iterator[Token]:
        raise AssertionError("the tokens were asked for")


def _tokens(lists: list[list[float]]) -> Tokens:
    return Tokens(
        Token(
            "a", None, top=tuple(Alternative(f"{n}", p) for n, p in enumerate(entries)), ranked=len(entries)
        )
        for entries in lists
    )


@given(_LISTS)
def test_each_row_is_that_of_its_own_list(lists: list[list[float]]) -> None:
    rows = TopLists(_tokens(lists).columns)
    known = [(place, entries) for place, entries in enumerate(lists) if entries]
    assert rows.position.tolist() == [place for place, _ in known]
    assert rows.size.tolist() == [len(entries) for _, entries in known]
    assert rows.best.tolist() == [max(entries) for _, entries in known]
    assert rows.least.tolist() == [max(min(entries), -1e9) for _, entries in known]
    assert rows.possible.tolist() == [sum(p > -math.inf for p in entries) for _, entries in known]
    assert rows.has_impossible == any(p == -math.inf for _, entries in known for p in entries)
    masses = [math.fsum(math.exp(min(p, 1.0)) for p in entries) for _, entries in known]
    assert rows.mass.tolist() == pytest.approx(masses, rel=1e-12)
    same = [now[0] for before, now in zip(known, known[1:], strict=False) if before[1] == now[1]]
    assert rows.repeated() == same


@pytest.mark.parametrize("place", [1, 17, 30])
def test_one_odd_list_among_many_is_found_wherever_it_stands(place: int) -> None:
    healthy = [token(f"w{n} ", -0.5, -2.0, -3.0 - n / 100) for n in range(40)]
    tokens = [*healthy[:place], token("x ", -0.7, -0.7, -0.7), *healthy[place + 1 :]]
    finding = found(subject("".join(t.text for t in tokens), tokens=tokens))[
        "logprobs_format", "mass_over_one"
    ]
    assert (finding.start, finding.end, finding.measured) == (place, place + 1, 1.0)


_MARKED = st.lists(
    st.builds(
        lambda number, raw: Token("a", None, raw, number),
        st.none() | st.integers(0, 2),
        st.none() | st.sampled_from([b"", b"a", b"b"]),
    ),
    max_size=8,
)


@given(_MARKED, _MARKED)
def test_the_common_prefix_ends_at_the_first_token_that_is_not_surely_the_same(
    own: list[Token], other: list[Token]
) -> None:
    differing = (n for n, (a, b) in enumerate(zip(own, other, strict=False)) if not same_token(a, b))
    expected = next(differing, min(len(own), len(other)))
    assert common_prefix(Tokens(own).columns, Tokens(other).columns) == expected


@given(st.text(st.sampled_from("aB9_' \u2019\n-éß関²İ"), max_size=40) | st.text(max_size=40))
def test_words_are_runs_of_letters_with_apostrophes_inside(text: str) -> None:
    assert words_of(text) == re.findall(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*", text.lower())


@given(st.text(st.characters(max_codepoint=127), max_size=40))
def test_ascii_letters_are_latin(text: str) -> None:
    count = sum(map(str.isalpha, text))
    assert letters_by_script(text) == ({"LATIN": count} if count else {})


_PROSE = (
    "The ferry leaves the pier at seven and reaches the island before the shops open. Most of the people on "
    "board are workers who have taken the same seats for years. In winter the crossing takes an hour longer, "
    "because the captain follows the coast. Nobody complains about it; there is coffee in the cabin."
)


@pytest.mark.parametrize("best", [-0.4, -1e-5])
@pytest.mark.parametrize("has_ids", [True, False])
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_no_token_is_made_of_a_healthy_answer(best: float, has_ids: bool, finish: str) -> None:
    rng = random.Random(1)
    tokens = []
    for number, piece in enumerate(re.findall(r" ?\w+|[^\w\s]", _PROSE)):
        texts = [piece, *(f"{piece}{n}" for n in range(4))]
        tops = [best, *sorted((-rng.uniform(11.0, 14.0) for _ in range(4)), reverse=True)]
        top = tuple(
            Alternative(text, p, text.encode(), 9 * number + n if has_ids else None)
            for n, (text, p) in enumerate(zip(texts, tops, strict=True))
        )
        tokens.append(Token(piece, best, piece.encode(), 9 * number if has_ids else None, top, 5))
    answer = Observation(text=_PROSE, tokens=Sealed(tokens), finish_reason=finish)
    body = {"messages": [{"role": "user", "content": "Tell me about the island."}], "temperature": 0}
    assert len(tokens) > 50
    assert not [f for f in detect(Subject(answer, "candidate", body, answer), SETTINGS) if f.is_fault]
