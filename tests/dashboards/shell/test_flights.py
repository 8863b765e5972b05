"""What several sessions ask at the same moment: asked once, and broken off by the last who leaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from compare.store import Store, open_store
from compare.store.answer import Result
from compare.store.errors import StoreQueryError
from dashboards.shell.handles import Handles
from dashboards.shell.reader import Answers
from ingest.errors import RetryError
from ingest.settings import StoreSettings

PATIENCE_S = 20.0
FRESH = "SELECT generateUUIDv4() AS id"
LONG = "SELECT count(sleepEachRow(0.1)) FROM numbers(600)"


@pytest.fixture(scope="module")
def handles(filled: Path) -> Iterator[Handles]:
    first = open_store(StoreSettings(url=f"chdb://{filled}"), role="reader", over_port=True)
    made = Handles(first)
    yield made
    made.close()


def test_who_asks_the_same_meanwhile_has_the_same_answer(handles: Handles) -> None:
    answers, goes_on, runs = Answers(), threading.Event(), []

    def run(store: Store) -> Result:
        runs.append(store)
        assert goes_on.wait(PATIENCE_S)
        return store.query(FRESH)

    one, two = (answers.ask(b"same", handles, run) for _ in range(2))
    other = answers.ask(b"other", handles, run)
    assert one is two is not other
    # One of two leaves: the other still has an answer.
    one.leave()
    goes_on.set()
    row = two.asked.result(PATIENCE_S).rows
    assert other.asked.result(PATIENCE_S).rows != row
    assert len(runs) == len(set(map(id, runs))) == 2
    kept = answers.get(b"same")
    assert kept is not None and kept.rows == row


def test_what_was_asked_before_a_refresh_answers_nobody_after_it(handles: Handles) -> None:
    answers, goes_on = Answers(), threading.Event()

    def run(store: Store) -> Result:
        assert goes_on.wait(PATIENCE_S)
        return store.query(FRESH)

    before = answers.ask(b"same", handles, run)
    answers.forget()
    after = answers.ask(b"same", handles, run)
    goes_on.set()
    rows = [flight.asked.result(PATIENCE_S).rows for flight in (before, after)]
    assert rows[0] != rows[1]
    kept = answers.get(b"same")
    assert kept is not None and kept.rows == rows[1]


def test_the_last_who_leaves_breaks_it_off_and_it_is_asked_anew(handles: Handles) -> None:
    answers, has_begun = Answers(), threading.Event()

    def run(store: Store) -> Result:
        has_begun.set()
        return store.query(LONG, settings={"max_block_size": 5})

    first = answers.ask(b"same", handles, run)
    assert answers.ask(b"same", handles, run) is first
    assert has_begun.wait(PATIENCE_S)
    first.leave()
    assert not first.asked.done()
    first.leave()
    with pytest.raises(RetryError):
        first.asked.result(PATIENCE_S)
    again = answers.ask(b"same", handles, lambda store: store.query("SELECT 42"))
    assert again.asked.result(PATIENCE_S).rows == [(42,)]


def test_an_error_comes_to_all_who_wait_and_is_not_kept(handles: Handles) -> None:
    answers, goes_on = Answers(), threading.Event()

    def run(store: Store) -> Result:
        assert goes_on.wait(PATIENCE_S)
        return store.query("SELECT * FROM nowhere")

    both = [answers.ask(b"same", handles, run) for _ in range(2)]
    goes_on.set()
    for flight in both:
        with pytest.raises(StoreQueryError, match="nowhere"):
            flight.asked.result(PATIENCE_S)
    later = answers.ask(b"same", handles, lambda store: store.query("SELECT 1"))
    assert later.asked.result(PATIENCE_S).rows == [(1,)]


def test_a_handle_comes_back_and_works_on_while_the_others_close(filled: Path) -> None:
    handles = Handles(open_store(StoreSettings(url=f"chdb://{filled}"), role="reader", over_port=True))
    with handles.lent() as one, handles.lent() as two:
        assert one is not two
    with handles.lent() as again:
        assert again in (one, two)
    with handles.lent() as late:
        handles.close()
        assert late.query("SELECT 1").rows == [(1,)]


def test_more_questions_than_the_store_is_to_have_at_once_wait_and_may_be_left(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboards.shell.handles.MOST_LENT", 1)
    handles = Handles(open_store(StoreSettings(url=f"chdb://{filled}"), role="reader", over_port=True))
    answers = Answers()
    with handles.lent():
        left = answers.ask(b"left", handles, lambda store: store.query("SELECT 1"))
        waits = answers.ask(b"waits", handles, lambda store: store.query("SELECT 2"))
        left.leave()
        assert not waits.asked.done()
    assert waits.asked.result(PATIENCE_S).rows == [(2,)]
    with pytest.raises(RetryError):
        left.asked.result(PATIENCE_S)
    handles.close()
