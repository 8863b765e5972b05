"""What a reader sees of an error that nobody foresaw: no code and no paths, and where the reason is."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
import streamlit as st

from compare.cli.dashboard import streamlit_command
from dashboards.screens import SCREENS
from tests.dashboards.pages import open_page


def broken(context: object) -> None:
    raise ZeroDivisionError("a fault of ours")


@pytest.fixture(autouse=True)
def _broken_page(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_STORE_URL", f"chdb://{filled}")
    monkeypatch.setattr(SCREENS["drift"], "show", broken)
    st.cache_resource.clear()


def test_a_page_that_fails_says_under_which_number_the_log_has_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept = st.get_option("client.showErrorDetails")
    st.set_option("client.showErrorDetails", "none")
    try:
        with caplog.at_level(logging.ERROR):
            app = open_page("drift")
    finally:
        st.set_option("client.showErrorDetails", kept)
    assert not app.exception
    assert [one.value for one in app.error] == ["The page failed."]
    (number,) = re.findall(r"number ([0-9a-f]{8}), \d{4}-", app.text[0].value)
    (record,) = (one for one in caplog.records if number in one.getMessage())
    assert record.exc_info is not None and record.exc_info[0] is ZeroDivisionError


def test_who_works_on_the_pages_sees_the_traceback() -> None:
    assert open_page("drift").exception[0].message == "a fault of ours"


def test_the_command_shows_readers_no_details() -> None:
    assert "--client.showErrorDetails=none" in streamlit_command(Path("app.py"), "127.0.0.1", 8501)
