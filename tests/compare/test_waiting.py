"""At the start the store is waited for, whatever the first calls on it were."""

from __future__ import annotations

import pytest

from compare import waiting
from ingest.errors import FatalError, RetryError


def test_a_store_that_comes_back_in_time_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_LOOK_AGAIN_S", 0.001)
    left = [RetryError("away"), RetryError("still away")]

    def call() -> str:
        if left:
            raise left.pop()
        return "there"

    assert waiting.waiting_for(call, 30.0) == "there"
    assert left == []


def test_one_that_stays_away_is_one_fatal_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_LOOK_AGAIN_S", 0.001)

    def call() -> None:
        raise RetryError("store http://h:1 is away")

    with pytest.raises(FatalError, match=r"^store http://h:1 is away \(waited 0 s\)$"):
        waiting.waiting_for(call, 0.01)
