"""The states of the page that need no browser: empty, no store, and text made visible."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st

from compare.store.client import open_store
from tests.dashboards.pages import open_page
from tests.fixtures.stores import MigratedAt


@pytest.fixture(autouse=True)
def _forget_the_store() -> Iterator[None]:
    """The page keeps its connection for the life of the process: each test starts without one."""
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


def test_an_empty_store_says_how_to_fill_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, migrated_at: MigratedAt
) -> None:
    settings = migrated_at(tmp_path / "store")
    with open_store(settings, role="owner"):
        monkeypatch.setenv("GNOMON_STORE_URL", settings.url)
        app = open_page()
        assert not app.exception
        assert "gnomon demo" in app.info[0].value


def test_a_store_that_is_not_there_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_STORE_URL", "http://127.0.0.1:1")
    app = open_page()
    assert not app.exception
    assert app.error[0].value == "The store cannot be read."
    assert any("127.0.0.1:1" in text.value for text in app.text)
    assert app.button[0].label == "Try again"
