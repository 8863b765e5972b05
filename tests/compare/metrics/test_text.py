from __future__ import annotations

import random
from decimal import Decimal

import pytest

from compare.metrics.text import (
    EDIT_BLOCK_CHARACTERS,
    answer_text,
    edit_similarity,
    is_refusal,
    keys_in,
    numbers_in,
    score_text,
)
from compare.result import Scores
from ingest.observation import Observation, ToolCall
from tests.compare.metrics.reports import sides


def scored(a: str, b: str) -> dict[str, float]:
    scores = Scores()
    both = sides(Observation(text=a), Observation(text=b))
    score_text(both, (answer_text(both.reference), answer_text(both.candidate)), scores)
    return scores.values


def levenshtein(a: str, b: str) -> int:
    """Textbook dynamic programme."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row, last = [i], row
        for j, y in enumerate(b, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (x != y)))
    return row[-1]


def test_exact_is_nfc_without_outer_white_space() -> None:
    assert scored("  caf\u00e9\n", "cafe\u0301")["exact_match"] == 1.0
    assert scored("a  b", "a b")["exact_match"] == 0.0


def test_edit_similarity_against_the_textbook() -> None:
    source = random.Random(1)
    for _ in range(200):
        a, b = ("".join(source.choices("abc \u9519", k=source.randrange(12))) for _ in range(2))
        longest = max(len(a), len(b))
        expected = 1.0 if longest == 0 else 1.0 - levenshtein(a, b) / longest
        assert edit_similarity(a, b) == pytest.approx(expected)
        assert edit_similarity(b, a) == edit_similarity(a, b)


def test_long_texts_take_linear_time_and_never_score_too_high() -> None:
    source = random.Random(2)
    a = "".join(source.choices("abcdef ", k=3 * EDIT_BLOCK_CHARACTERS))
    changed = [char if source.random() > 0.05 else "X" for char in a]
    changed[0] = changed[-1] = "X"
    b = "".join(changed)
    share = sum(x != y for x, y in zip(a, b, strict=True)) / len(a)
    assert edit_similarity(a, b) == pytest.approx(1.0 - share, abs=0.005)
    assert edit_similarity("x" * 2_000_000, "y" * 2_000_000) == 0.0


@pytest.mark.parametrize(
    ("a", "b", "count"),
    [
        ("41 apples", "42 apples", 1),
        ("1,000.50 EUR", "1000.5 EUR", 0),
        ("1, 2, 3", "1, 2", 1),
        ("code E1021", "code E1022", 1),
        ("0x7FFE", "0x7ffe", 0),
        ("0x7ffe", "0x7fff", 1),
        ("at -5", "at 5", 1),
        ("2026-01-02", "2026-01-03", 1),
        ("1e3", "1000", 0),
        ("\uff14\uff11", "41", 0),
        ("7 7", "7", 1),
        ("1e999999999 and 9" + "9" * 5000, "1e999999999 and 9" + "9" * 5000, 0),
    ],
)
def test_numbers(a: str, b: str, count: int) -> None:
    assert scored(a, b)["numbers_differ"] == count
    assert scored(b, a)["numbers_differ"] == count


def test_hostile_numbers_are_read_in_linear_time() -> None:
    # A pattern that backtracks would not come back from these.
    assert numbers_in(",".join(["111"] * 300_000)).total() == 1
    assert numbers_in("1." * 200_000) == {Decimal("1.1"): 100_000}


def test_keys() -> None:
    assert keys_in('{"code": 1, "the name" : {"\u7ea7\u522b": 2}}') == {"code", "the name", "\u7ea7\u522b"}
    assert keys_in("level: error\n- code = 7\n  a sentence: no key") == {"level", "code"}
    assert scored('{"code": 1}', '{"codes": 1}')["keys_differ"] == 1.0
    assert scored('{"code": 1, "b": 2}', '{"b": 2, "code": 1}')["keys_differ"] == 0.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm sorry, but I can't help with that.", True),
        ("I\u2019m unable to provide that.", True),
        ("As an AI language model, I do not have opinions.", True),
        ("Unfortunately, I cannot do this.", True),
        ("\u62b1\u6b49\uff0c\u6211\u65e0\u6cd5\u63d0\u4f9b\u8fd9\u4e9b\u4fe1\u606f\u3002", True),
        ("\u4f5c\u4e3a\u4e00\u4e2a\u4eba\u5de5\u667a\u80fd\uff0c", True),
        ("Sorry for the delay: the parcel is on its way.", False),
        ("You can reset it in Settings. " * 10 + "I cannot say more.", False),
        ("\u5df4\u9ece\u662f\u6cd5\u56fd\u7684\u9996\u90fd\u3002", False),
    ],
)
def test_refusals(text: str, expected: bool) -> None:
    assert is_refusal(text) is expected


def test_refusal_flip_and_length_ratio() -> None:
    found = scored("Here you are: abcd", "I'm sorry, but I can't.")
    assert found["refusal_flip"] == 1.0
    assert found["length_ratio"] == pytest.approx(23 / 18)


def test_tool_calls_are_part_of_the_text() -> None:
    call = ToolCall("weather", '{"city": "Oslo"}')
    assert answer_text(Observation(text=" Let me see. ", tool_calls=(call,))) == (
        'Let me see.\nweather({"city": "Oslo"})'
    )


def test_an_empty_reference_has_no_length_ratio() -> None:
    scores = Scores()
    score_text(sides(Observation(), Observation(text="x")), ("", "x"), scores)
    assert scores.unscored == {"length_ratio": "empty_text"}
    assert scores.values["edit_similarity"] == 0.0
