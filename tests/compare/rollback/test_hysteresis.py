"""The fold against a reading of the whole history at each step."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from compare.rollback.condition import Says
from compare.rollback.hysteresis import Change, Standing, fold

START = datetime(2026, 11, 30, 3, tzinfo=UTC)
INTERVAL_S = 60.0


def folded(said: Sequence[tuple[Says, float]], hold: int, clear: int) -> list[Change | None]:
    standing, changes = Standing(), []
    for says, second in said:
        at = START + timedelta(seconds=second)
        standing, change = fold(standing, says, at, hold=hold, clear=clear, interval_s=INTERVAL_S)
        changes.append(change)
    return changes


def brute_force(said: Sequence[tuple[Says, float]], hold: int, clear: int) -> list[Change | None]:
    """At each evaluation look back over what was said since the last gap, without the unknown ones."""
    changes: list[Change | None] = []
    is_called = False
    for end in range(1, len(said) + 1):
        first = end - 1
        while first and said[first][1] - said[first - 1][1] <= 3 * INTERVAL_S:
            first -= 1
        known = [says for says, _ in said[first:end] if says != "unknown"]
        tail = list(next(itertools.groupby(reversed(known)))[1]) if known else []
        change: Change | None = None
        if not is_called and len(tail) >= hold and tail[0] == "yes":
            is_called, change = True, "called"
        elif is_called and len(tail) >= clear and tail[0] == "no":
            is_called, change = False, "cleared"
        changes.append(change)
    return changes


@pytest.mark.parametrize(("hold", "clear"), [(1, 1), (2, 3), (3, 2)])
def test_every_short_history(hold: int, clear: int) -> None:
    words: tuple[Says, ...] = ("yes", "no", "unknown")
    for said in itertools.product(words, repeat=7):
        history = [(one, INTERVAL_S * number) for number, one in enumerate(said)]
        assert folded(history, hold, clear) == brute_force(history, hold, clear), said


def test_long_histories_with_gaps() -> None:
    choose = random.Random(7)
    called = 0
    for _ in range(300):
        second, history = 0.0, []
        for _ in range(40):
            second += choose.choice([60.0, 61.0, 180.0, 180.5, 4_000.0])
            history.append((choice_of(choose), second))
        expected = brute_force(history, 3, 4)
        called += expected.count("called")
        assert folded(history, 3, 4) == expected
    assert called > 100


def choice_of(choose: random.Random) -> Says:
    found: Says = choose.choices(("yes", "no", "unknown"), (5, 3, 2))[0]
    return found


def test_by_hand() -> None:
    said: list[Says] = ["yes", "yes", "unknown", "yes", "no", "yes", "no", "no", "unknown", "no"]
    history = [(one, 60.0 * number) for number, one in enumerate(said)]
    assert folded(history, 3, 3) == [None, None, None, "called", *[None] * 5, "cleared"]
