"""The experiment that the side bar shows stays the linked one."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboards.questions import summary
from dashboards.shell.reader import Reader
from ingest.errors import RetryError
from tests.dashboards.pages import address_of

KNOWN = [{"experiment": "night", "candidate": name} for name in ("awq", "q4")]


def page() -> None:
    from typing import Any, cast

    import streamlit as st

    from dashboards.shell.address import Address
    from dashboards.shell.context import choose_series
    from dashboards.words import Words
    from ingest.errors import RetryError

    address = Address(Words("en"))
    try:
        series = cast(Any, choose_series(cast(Any, None), address, Words("en")))
    except RetryError as error:
        st.error(str(error))
    else:
        st.text(series["candidate"])
        address.write()


def test_a_store_that_was_away_for_a_run_leaves_the_choice_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(reader: Reader) -> list[dict[str, Any]]:
        raise RetryError("away")

    monkeypatch.setattr(summary, "experiments", lambda reader: KNOWN)
    monkeypatch.setattr(summary, "series_of", lambda reader, row: row)
    app = AppTest.from_function(page)
    app.query_params["experiment"], app.query_params["candidate"] = "night", "q4"
    assert app.run().text[0].value == "q4"
    with monkeypatch.context() as patched:
        patched.setattr(summary, "experiments", away)
        assert app.run().error[0].value == "away"
    assert app.run().text[0].value == "q4"
    assert app.selectbox[0].value == ("night", "q4")
    app.selectbox[0].set_value(("night", "awq"))
    assert app.run().text[0].value == "awq"
    assert address_of(app)["candidate"] == "awq"
