"""The loop search against brute force, and its work against the length."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.detectors.periods import Run, Shape, as_symbols, find_runs

_SHAPE = Shape(max_period=4096, min_repeats=4, min_length=24, long_period=32, long_repeats=2.5)


def _is_periodic(text: str, run: Run) -> bool:
    return all(text[i] == text[i + run.period] for i in range(run.start, run.end - run.period))


@pytest.mark.parametrize("period", [1, 2, 3, 5, 6, 7, 31, 32, 64, 100, 405, 512, 1000, 2048, 4096])
def test_finds_a_planted_loop_whole(period: int) -> None:
    rng = random.Random(period)
    unit = "".join(rng.choice("etaoin shrdlu\n") for _ in range(period))
    noise = "".join(chr(rng.randrange(0x4E00, 0x9F00)) for _ in range(300))
    copies = 3 if period >= 32 else 32 // period + 4
    text = noise + unit * copies + noise
    best = max(find_runs(text, _SHAPE), key=lambda run: run.length)
    assert (best.start, best.end) == (300, 300 + period * copies)
    assert period % best.period == 0


def test_finds_a_loop_whose_unit_is_full_of_equal_indentation() -> None:
    # The gram at most anchors is white space that occurs at every distance.
    unit = "".join(
        f"        value_{word} = None\n" for word in ("a", "bc", "def", "ghij", "k", "lm", "nop", "q")
    )
    text = "class A:\n" + unit * 3
    best = max(find_runs(text, _SHAPE), key=lambda run: run.length)
    assert best.period == len(unit)
    assert best.end == len(text)
    assert best.repeats >= 3


@given(st.text(alphabet="ab", max_size=300))
def test_every_run_is_periodic_and_counts(text: str) -> None:
    for run in find_runs(text, _SHAPE):
        assert 0 <= run.start < run.end <= len(text)
        assert _is_periodic(text, run)
        assert run.length >= 24
        assert run.repeats >= (2.5 if run.period >= 32 else 4)


@given(st.text(alphabet="ab", min_size=1, max_size=6), st.integers(0, 40), st.integers(32, 80))
def test_no_short_loop_at_the_end_is_missed(unit: str, noise: int, length: int) -> None:
    text = "".join(chr(0x4E00 + i) for i in range(noise)) + (unit * length)[:length]
    runs = find_runs(text, _SHAPE)
    assert any(run.start <= noise + 8 and run.end == len(text) for run in runs)


def test_text_without_repetition_has_no_run() -> None:
    assert find_runs("".join(chr(0x4E00 + i) for i in range(5000)), _SHAPE) == []


def test_equal_tokens_become_equal_symbols() -> None:
    assert find_runs(as_symbols([*"xyz", *[7, 8, 9, 10] * 20]), _SHAPE) == [Run(3, 83, 4)]


class _Counted(str):
    """A text that counts the characters that searches and slices of it may have looked at."""

    work = 0

    def find(self, needle: str, start: Any = 0, end: Any = None) -> int:
        at = str.find(self, needle, start, end)
        _Counted.work += (at if at != -1 else end) - start + len(needle)
        return at

    def __getitem__(self, key: Any) -> str:
        piece = str.__getitem__(self, key)
        _Counted.work += len(piece)
        return piece


def _fibonacci(length: int) -> str:
    a, b = "a", "ab"
    while len(b) < length:
        a, b = b, b + a
    return b[:length]


def _almost(length: int) -> str:
    rng = random.Random(3)
    unit = "".join(rng.choice("abcdefgh ") for _ in range(4000))
    return ((unit * 2 + unit[:1600] + "#") * (length // 9000))[:length]


@pytest.mark.parametrize(
    "make",
    [
        lambda n: "a" * n,
        lambda n: "ab" * (n // 2),
        lambda n: "".join(random.Random(1).choices("ab", k=n)),
        lambda n: "".join(random.Random(2).choices([chr(c) for c in range(32, 3000)], k=n)),
        _fibonacci,
        _almost,
        lambda n: (" " * 99 + "x") * (n // 100),
    ],
    ids=["one letter", "two in turn", "two at random", "random", "fibonacci", "almost loops", "padding"],
)
def test_work_is_linear_even_on_hostile_text(make: Any) -> None:
    work = []
    for length in (50_000, 200_000):
        _Counted.work = 0
        find_runs(_Counted(make(length)), _SHAPE)
        work.append(_Counted.work)
    # Four times the text, at most about four times the work (the finer tail is the same for both).
    assert work[1] <= 5 * work[0] + 100_000
    assert work[1] <= 4_000 * 200_000
