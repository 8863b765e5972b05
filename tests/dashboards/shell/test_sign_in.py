"""Who may see and do what, and what is said where sign-in is not set up."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit as st

from compare.store.client import open_store
from dashboards.shell.sign_in import VARIABLE, settings_of, visitor_named
from ingest.errors import SettingsError
from ingest.settings_dashboard import DashboardSettings
from tests.dashboards.pages import open_page
from tests.fixtures.stores import MigratedAt


@pytest.mark.parametrize(
    ("name", "readers", "shows_text"),
    [
        ("", ["*"], True),
        ("", [], False),
        # Nobody is not on a list, even if somebody put an empty name there.
        ("", ["", "anna@example.org"], False),
        ("anna@example.org", ["anna@example.org"], True),
        ("Anna@example.org", ["anna@example.org"], False),
        ("anna@example.org.evil", ["anna@example.org"], False),
        ("*", ["anna@example.org"], False),
    ],
)
def test_texts_are_for_those_who_are_named(name: str, readers: list[str], shows_text: bool) -> None:
    who = visitor_named(name, DashboardSettings(sign_in=True, text_readers=readers, actors=[]))
    assert (who.name, who.shows_text, who.may_act) == (name, shows_text, False)


def test_acting_and_reading_are_apart() -> None:
    who = visitor_named("b", DashboardSettings(text_readers=["a"], actors=["b"]))
    assert (who.shows_text, who.may_act) == (False, True)


@pytest.mark.parametrize("value", ["{", '{"sign_in": "yes"}', '{"reader": []}', "[]"])
def test_settings_that_do_not_fit_are_one_clear_line(value: str) -> None:
    with pytest.raises(SettingsError, match=f"{VARIABLE} does not fit"):
        settings_of({VARIABLE: value})
    assert settings_of({}) == DashboardSettings()


def test_sign_in_without_a_provider_shows_nothing_but_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, migrated_at: MigratedAt
) -> None:
    settings = migrated_at(tmp_path / "store")
    monkeypatch.setenv("GNOMON_STORE_URL", settings.url)
    monkeypatch.setenv(VARIABLE, '{"sign_in": true}')
    st.cache_resource.clear()
    with open_store(settings, role="owner"):
        app = open_page("sql")
        assert not app.exception
        assert "[auth] is missing" in app.error[0].value
        assert not app.title and not app.sidebar.selectbox
    st.cache_resource.clear()
