"""What a page shows for each family of the store's errors, and how parts of a page fail apart."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from compare.store.errors import StoreBusyError, StoreQueryError, of_query
from dashboards.shell import states
from dashboards.shell.hidden_text import TextHidden
from dashboards.shell.reader import Cancelled
from ingest.errors import GnomonError, RetryError

AWAY = "The store cannot be read."
GONE = "The process that owned the store's folder has ended."
DENIED = "The store's account may not read this. It needs the role `gnomon_dashboard` (sql/grants/)."
TOO_LARGE = "The query went over its limit of time, memory or rows. Narrow the time range or the filters."
OLD = "The store lacks a table or column that this page reads: run `gnomon migrate`."
REFUSED = "The store refused the query."


def shown(error: Exception) -> AppTest:
    def page(error: Exception) -> None:
        import streamlit as st

        from dashboards.shell import states
        from dashboards.words import Words

        for section in ("one", "two"):
            st.session_state.setdefault("again", 0)
            states.explain(
                error,
                Words("en"),
                lambda: st.session_state.update(again=st.session_state["again"] + 1),
                section=section,
            )

    app = AppTest.from_function(page, kwargs={"error": error}).run()
    assert not app.exception
    return app


@pytest.mark.parametrize(
    ("error", "headline"),
    [
        *((StoreQueryError("m", code=code), DENIED) for code in (164, 192, 193, 194, 497, 516)),
        *((StoreQueryError("m", code=code), TOO_LARGE) for code in (158, 307, 396)),
        *((StoreBusyError("m", code=code), TOO_LARGE) for code in (159, 160, 202, 241)),
        *((StoreQueryError("m", code=code), OLD) for code in (16, 47, 60, 81)),
        (StoreQueryError("Unknown table function pair_beside_v1", code=46), OLD),
        *((StoreQueryError("m", code=code), REFUSED) for code in (62, 46, None)),
        (StoreBusyError("m", code=210), AWAY),
        (RetryError("m"), AWAY),
        (RetryError("store chdb:///d (through process 7): HTTP status 500"), GONE),
        (StoreBusyError("store chdb:///d (through process 7): stopping", code=236), GONE),
        (StoreBusyError("store chdb:///d (through process 7): slow", code=159), TOO_LARGE),
        (GnomonError("m"), AWAY),
    ],
)
def test_each_family_has_its_words(error: Exception, headline: str) -> None:
    app = shown(error)
    assert [one.value for one in app.error] == [headline] * 2
    assert [one.value for one in app.text] == [str(error)] * 2
    hinted = isinstance(error, RetryError) and headline in (AWAY, GONE)
    assert len(app.caption) == 2 * hinted
    # Both sections can be tried again, each by its own button.
    assert app.button[1].click().run().session_state["again"] == 1


def test_the_stores_message_is_text_however_hostile() -> None:
    app = shown(StoreQueryError("**b** \x1b[31m \u202e <script> " + "x" * 5_000, code=62))
    (first, _) = (one.value for one in app.text)
    assert first.startswith("**b** \\x1b[31m \\u202e <script> xxx")
    assert "more characters]" in first


def test_cancelled_and_hidden_are_no_errors() -> None:
    app = shown(Cancelled("question"))
    assert not app.error
    assert [one.value for one in app.info] == ["The query was cancelled."] * 2
    app = shown(TextHidden())
    assert not app.error and not app.button


def test_a_server_that_is_over_a_limit_is_told_from_one_that_is_away() -> None:
    from clickhouse_connect.driver.exceptions import DatabaseError

    busy = DatabaseError("Code: 241. DB::Exception: memory")
    busy.code = 241
    assert states.is_too_large(of_query(busy, "here"))
    assert isinstance(of_query(busy, "here"), RetryError)
    assert not states.is_too_large(of_query(DatabaseError("refused"), "here"))
