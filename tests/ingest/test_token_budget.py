from __future__ import annotations

import logging
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from ingest.errors import BudgetError
from ingest.observation import Failure, FailureKind, Observation, ToolCall
from ingest.token_budget import TokenBudget, TokenUse, estimated, tokens_of_bytes, use_of
from ingest.tokens import Token, Tokens


class Day:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 29, 23, 59, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_each_change_is_logged_once_and_midnight_makes_it_whole(caplog: pytest.LogCaptureFixture) -> None:
    day = Day()
    budget = TokenBudget("cand", 100, day)
    with caplog.at_level(logging.WARNING):
        budget.spend(TokenUse(60, 39, 0, 1))
        budget.check()
        budget.spend(TokenUse(1, 0, 0, 1))
        for _ in range(1000):
            with pytest.raises(BudgetError) as caught:
                budget.check()
        day.now += timedelta(minutes=1)
        for _ in range(1000):
            budget.check()
    assert str(caught.value) == 'endpoint "cand": 100 tokens of 100 are used up on 2026-11-29 (UTC)'
    assert [record.getMessage() for record in caplog.records] == [
        'endpoint "cand": the budget of 100 tokens a day is used up (100); records fail until 00:00 UTC',
        'endpoint "cand": a new day, its token budget is whole again',
    ]


def test_the_day_is_utc_whatever_the_clock_says() -> None:
    day = Day()
    day.now = datetime(2026, 11, 30, 5, 0, tzinfo=timezone(timedelta(hours=9)))
    budget = TokenBudget("cand", None, day)
    budget.spend(TokenUse(1, 1, 0, 1))
    assert list(budget.own()) == [date(2026, 11, 29)]


def test_others_are_added_and_two_days_are_kept() -> None:
    day = Day()
    budget = TokenBudget("cand", 100, day)
    for _ in range(4):
        budget.spend(estimated(5, 2))
        day.now += timedelta(days=1)
    day.now -= timedelta(days=1)
    assert budget.own() == {date(2026, 12, 1): TokenUse(5, 2, 7, 1), date(2026, 12, 2): TokenUse(5, 2, 7, 1)}
    budget.set_others({date(2026, 12, 1): 1000, date(2026, 12, 2): 92})
    assert budget.used() == 99
    budget.check()
    budget.set_others({date(2026, 12, 2): 93})
    with pytest.raises(BudgetError):
        budget.check()


def test_without_a_limit_nothing_is_refused() -> None:
    budget = TokenBudget("cand", None)
    budget.spend(TokenUse(10**12, 0, 0, 1))
    budget.check()
    assert budget.used() == 10**12


def failed(kind: FailureKind, status: int | None = None, **fields: object) -> Observation:
    return Observation(failure=Failure(kind, "words", status), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "use"),
    [
        (Observation(prompt_tokens=7, completion_tokens=3), TokenUse(7, 3, 0, 1)),
        # 400 bytes asked; 9 letters and 3 of a tool call's arguments are 12 bytes.
        (Observation(text="abcdef", reasoning="ghi"), TokenUse(100, 3, 103, 1)),
        (Observation(text="abcd", tool_calls=(ToolCall("f", "{ab}}}}}"),)), TokenUse(100, 3, 103, 1)),
        (
            Observation(text="ab", tokens=Tokens([Token("a", -0.1), Token("b", -0.1)])),
            TokenUse(100, 2, 102, 1),
        ),
        (Observation(prompt_tokens=7, text="abcd"), TokenUse(7, 1, 1, 1)),
        (failed(FailureKind.HTTP_ERROR, 400), TokenUse(0, 0, 0, 1)),
        (failed(FailureKind.CONTEXT_EXCEEDED, 500), TokenUse(0, 0, 0, 1)),
        (failed(FailureKind.HTTP_ERROR, 500), TokenUse(100, 0, 100, 1)),
        (failed(FailureKind.IDLE_TIMEOUT, 200, text="abcd"), TokenUse(100, 1, 101, 1)),
        (failed(FailureKind.FIRST_TOKEN_TIMEOUT), TokenUse(100, 0, 100, 1)),
    ],
)
def test_what_a_call_cost(seen: Observation, use: TokenUse) -> None:
    assert use_of(seen, 400) == use


def test_four_bytes_are_a_token_rounded_up() -> None:
    assert [tokens_of_bytes(size) for size in (0, 1, 4, 5)] == [0, 1, 1, 2]
