"""How a page asks: remembered for a while, without texts for some, and given up when nobody waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from streamlit.testing.v1 import AppTest

from compare.store import Store, open_store
from compare.store.asked import Asked
from compare.store.errors import StoreQueryError
from dashboards.shell.handles import Handles
from dashboards.shell.hidden_text import TEXT_VIEWS, TextHidden
from dashboards.shell.reader import KEPT_S, Answers, Reader
from dashboards.words import Words
from ingest.settings import StoreSettings


@pytest.fixture(scope="module")
def store(filled: Path) -> Iterator[Store]:
    with open_store(StoreSettings(url=f"chdb://{filled}"), role="reader", over_port=True) as opened:
        yield opened


def test_an_answer_is_remembered_for_its_time_and_for_its_question(store: Store) -> None:
    now = [0.0]
    handles, answers = Handles(store), Answers(lambda: now[0])

    def run() -> Reader:
        return Reader(handles, answers, Words("en"))

    sql = "SELECT generateUUIDv4() AS id, {n:UInt8} AS n"
    first = run().query(sql, {"n": 1})
    assert run().query(sql, {"n": 1}).rows == first.rows
    assert run().query(sql, {"n": 2}).rows != first.rows
    assert run().query(sql, {"n": 1}, {"max_threads": 1}).rows != first.rows
    now[0] = KEPT_S + 1
    reader = run()
    later = reader.query(sql, {"n": 1})
    assert later.rows != first.rows
    # One run of a page shows one answer, however long it takes.
    now[0] += KEPT_S + 1
    assert reader.query(sql, {"n": 1}).rows == later.rows
    reader.forget()
    assert reader.query(sql, {"n": 1}).rows != later.rows


def test_what_is_asked_ahead_is_asked_once_and_comes_as_far_as_it_can(store: Store) -> None:
    """Two questions, the second about the first one's answer."""
    heard: list[Any] = []

    def ask(asked: Asked, sql: str) -> None:
        first = asked.query(sql).rows[0][0]
        heard.append(first)
        heard.append(asked.query("SELECT {n:UInt64} + 1", {"n": first}).rows[0][0])

    reader = Reader(Handles(store), Answers(), Words("en"))
    sql = "SELECT toUInt64(rand64() % 1000000)"
    reader.ahead(ask, sql)
    assert heard == []
    first = reader.query(sql).rows[0][0]
    reader.ahead(ask, sql)
    assert heard == [first]
    ask(reader, sql)
    assert heard == [first, first, first + 1]
    blind = Reader(Handles(store), Answers(), Words("en"), shows_text=False)
    # The page says so where it asks itself.
    blind.ahead(lambda asked: asked.query("SELECT 1 FROM tokens_v1"))
    blind.close()


def test_what_nobody_waited_for_is_broken_off(filled: Path) -> None:
    settings = StoreSettings(url=f"chdb://{filled}")
    with (
        open_store(settings, role="owner") as owner,
        open_store(settings, role="reader", over_port=True) as store,
    ):
        reader = Reader(Handles(store), Answers(), Words("en"))
        sql = "SELECT count(sleepEachRow(0.1)) FROM numbers(599)"
        reader.ahead(lambda asked: asked.query(sql, {}, {"max_block_size": 5}))
        wait_until_running(owner, 1, "%numbers(599)%")
        reader.close()
        wait_until_running(owner, 0, "%numbers(599)%")


def wait_until_running(owner: Store, count: int, like: str) -> None:
    """Until the engine runs so many statements like this beside the one that asks."""
    deadline = time.monotonic() + 20
    while owner.query(f"SELECT count() - 1 FROM system.processes WHERE query LIKE '{like}'").rows != [
        (count,)
    ]:
        assert time.monotonic() < deadline, f"not {count} of {like}"
        time.sleep(0.1)


def test_an_account_without_texts_reads_no_view_and_no_column_of_them(store: Store) -> None:
    answers = Answers()
    whole, blind = (Reader(Handles(store), answers, Words("en"), shows_text=shows) for shows in (True, False))
    for view in sorted(TEXT_VIEWS):
        for sql in (f"SELECT 1 FROM {view}", f"SELECT 1 FROM gnomon.`{view}` AS x LIMIT 1"):
            with pytest.raises(TextHidden):
                blind.query(sql)
            with pytest.raises(TextHidden):
                blind.some(sql, None, None, rows=1, size=1_000)
            with pytest.raises(TextHidden):
                blind.some(sql, None, None, rows=1, size=1_000, is_download=True)
    sql = "SELECT verdict, reasons FROM pairs_v1 WHERE verdict = 'candidate_worse' LIMIT 1"
    assert "<script>" in str(whole.query(sql).rows)
    # What the other remembered is blanked too.
    assert blind.query(sql).rows == [("candidate_worse", ["(hidden)"])]
    some = blind.some("SELECT message, code FROM findings_v1 LIMIT 1", None, None, rows=1, size=1_000)
    assert some.rows == [("(hidden)", "code")]


def test_what_the_store_refuses_comes_to_the_page(store: Store) -> None:
    with pytest.raises(StoreQueryError, match="nowhere"):
        Reader(Handles(store), Answers(), Words("en")).query("SELECT * FROM nowhere")


class Stopped(BaseException):
    """As Streamlit stops a page's run: at its next word on the page."""


def test_a_run_that_is_stopped_frees_the_engine(filled: Path) -> None:
    def say(key: str, **values: Any) -> str:
        if key == "shell.reading" and values["seconds"] >= 1:
            raise Stopped
        return Words("en")(key, **values)

    settings = StoreSettings(url=f"chdb://{filled}")
    with (
        open_store(settings, role="owner") as owner,
        open_store(settings, role="reader", over_port=True) as store,
    ):
        reader = Reader(Handles(store), Answers(), cast(Words, say))
        with pytest.raises(Stopped):
            # A minute, if nobody stops it.
            reader.query("SELECT count(sleepEachRow(0.1)) FROM numbers(600)", {}, {"max_block_size": 5})
        wait_until_running(owner, 0, "%sleepEachRow(0.1)%numbers(600)%")
        # The same reader asks on.
        assert reader.query("SELECT 1 AS one").rows == [(1,)]


def test_a_cancelled_query_is_not_asked_until_somebody_says_so(filled: Path) -> None:
    def page(folder: str) -> None:
        import streamlit as st

        from compare.store import open_store
        from dashboards.shell import states
        from dashboards.shell.handles import Handles
        from dashboards.shell.reader import Answers, Cancelled, Reader
        from dashboards.words import Words
        from ingest.settings import StoreSettings

        with open_store(StoreSettings(url=f"chdb://{folder}"), role="reader", over_port=True) as store:
            try:
                rows = Reader(Handles(store), Answers(), Words("en")).query("SELECT 41 + 1").rows
                st.text(f"answered {rows[0][0]}")
            except Cancelled as error:
                states.explain(error, Words("en"), lambda: None)

    with open_store(StoreSettings(url=f"chdb://{filled}"), role="reader", over_port=True) as store:
        question = msgspec.json.encode([store.where, "SELECT 41 + 1", None, None])
    app = AppTest.from_function(page, kwargs={"folder": str(filled)}, default_timeout=60)
    # What the button of the note sets.
    app.session_state[f"cancelled-{hash(question):x}"] = True
    app.run()
    assert not app.exception and not app.text
    assert app.info[0].value == "The query was cancelled."
    app.button[0].click().run()
    assert [one.value for one in app.text] == ["answered 42"]
