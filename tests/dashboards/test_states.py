"""The states of the page that need no browser: empty, no store, and text made visible."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import dashboards
from compare.store import migrate
from compare.store.client import open_store
from dashboards.visible import visible
from ingest.settings import StoreSettings


@pytest.fixture(autouse=True)
def _forget_the_store() -> Iterator[None]:
    """The page keeps its connection for the life of the process: each test starts without one."""
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


APP = Path(dashboards.__file__).with_name("app.py")


def test_an_empty_store_says_how_to_fill_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"chdb://{tmp_path / 'store'}"
    with open_store(StoreSettings(url=url), role="owner") as store:
        migrate.apply(store)
        monkeypatch.setenv("GNOMON_STORE_URL", url)
        app = AppTest.from_file(str(APP), default_timeout=60).run()
        assert not app.exception
        assert "gnomon demo" in app.info[0].value


def test_a_store_that_is_not_there_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_STORE_URL", "http://127.0.0.1:1")
    app = AppTest.from_file(str(APP), default_timeout=60).run()
    assert not app.exception
    assert app.error[0].value == "The store cannot be read."
    assert any("127.0.0.1:1" in text.value for text in app.text)
    assert app.button[0].label == "Try again"


def test_control_and_bidi_characters_are_written_out() -> None:
    assert visible("a\x1b[0m\u202eb\x00\ud800\tc\nd") == "a<U+001B>[0m<U+202E>b<U+0000><U+D800>\tc\nd"


def test_ordinary_text_of_any_script_stays() -> None:
    assert visible("日志 é 🙂 <b>") == "日志 é 🙂 <b>"


def test_a_cut_is_said() -> None:
    assert visible("x" * 12, limit=10) == "xxxxxxxxxx\n[cut here: 2 more characters]"
