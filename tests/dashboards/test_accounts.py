"""The accounting is counted when it is due, by one caller at a time."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pandas as pd
import pytest

from compare.store.client import Store
from dashboards.questions import accounts
from dashboards.questions.accounts import KEPT_S, Accounts
from dashboards.questions.summary import Series

LARGE = Series("nightly", "q4", datetime(2026, 1, 1, tzinfo=UTC))
STORE = object.__new__(Store)


class Counting:
    """Stands in for the query: its n-th answer is n; it waits for `go` where that is set."""

    def __init__(self) -> None:
        self.count = 0
        self.go: threading.Event | None = None
        self.began = threading.Event()

    def __call__(self, store: Store, experiment: str) -> pd.DataFrame:
        self.count += 1
        answer = self.count
        self.began.set()
        if self.go is not None:
            assert self.go.wait(30)
        return pd.DataFrame({"consumed": [answer]})


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    made = Counting()
    monkeypatch.setattr(accounts, "accounting", made)
    return made


def seen(kept: Accounts, series: Series = LARGE) -> int:
    return int(kept.of(STORE, series)["consumed"].iloc[0])


def test_a_large_experiment_is_counted_once_a_minute_and_a_small_one_each_time(counting: Counting) -> None:
    now = 1000.0
    kept = Accounts(lambda: now)
    assert [seen(kept), seen(kept)] == [1, 1]
    now += KEPT_S - 0.001
    assert seen(kept) == 1
    now += 0.001
    assert seen(kept) == 2
    small = Series("demo", "q4")
    assert [seen(kept, small), seen(kept, small), seen(kept)] == [3, 4, 2]


def test_while_one_counts_anew_the_others_get_what_was_counted(counting: Counting) -> None:
    now = 1000.0
    kept = Accounts(lambda: now)
    assert seen(kept) == 1
    now += KEPT_S
    counting.began.clear()
    counting.go = threading.Event()
    found: list[int] = []
    slow = threading.Thread(target=lambda: found.append(seen(kept)))
    slow.start()
    assert counting.began.wait(30)
    assert seen(kept) == 1
    counting.go.set()
    slow.join(30)
    assert found == [2]
    assert seen(kept) == 2


def test_those_that_come_first_together_wait_for_one_count(counting: Counting) -> None:
    kept = Accounts(lambda: 1000.0)
    counting.go = threading.Event()
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(seen(kept))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert counting.began.wait(30)
    counting.go.set()
    for thread in threads:
        thread.join(30)
    assert found == [1, 1, 1, 1]


def test_a_count_that_fails_is_tried_by_the_next(monkeypatch: pytest.MonkeyPatch, counting: Counting) -> None:
    def away(store: Store, experiment: str) -> pd.DataFrame:
        raise RuntimeError("away")

    kept = Accounts(lambda: 1000.0)
    with monkeypatch.context() as broken:
        broken.setattr(accounts, "accounting", away)
        with pytest.raises(RuntimeError, match="away"):
            seen(kept)
    assert seen(kept) == 1
