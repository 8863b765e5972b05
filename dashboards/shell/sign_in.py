"""Who looks at the page, and what they may see and do."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec
import streamlit as st

from dashboards.shell import browser
from dashboards.shell.hostile import in_markdown
from dashboards.words import Words
from ingest.errors import SettingsError
from ingest.settings_dashboard import DashboardSettings

VARIABLE = "GNOMON_DASHBOARD"
"""Holds the settings as JSON; `gnomon dashboard` sets it."""


class Visitor(msgspec.Struct, frozen=True):
    """One session's person. `name` is empty where nobody signs in."""

    name: str
    shows_text: bool
    may_act: bool


def settings_of(environ: Mapping[str, str] = os.environ) -> DashboardSettings:
    """The settings, or the default ones. Raises SettingsError if they do not fit."""
    try:
        return msgspec.json.decode(environ.get(VARIABLE, "{}"), type=DashboardSettings)
    except msgspec.MsgspecError as error:
        raise SettingsError(f"{VARIABLE} does not fit: {error}") from error


def visitor_named(name: str, settings: DashboardSettings) -> Visitor:
    """What the settings allow them."""

    def is_among(names: list[str]) -> bool:
        return "*" in names or (bool(name) and name in names)

    return Visitor(name, is_among(settings.text_readers), is_among(settings.actors))


def visitor(settings: DashboardSettings, say: Words, pages: Sequence[str]) -> Visitor | None:
    """Who it is; None if they have yet to sign in, which the page then offers: whoever does comes back to the
    address that they came with. `pages` are the last parts of all pages' addresses.
    """
    if not settings.sign_in:
        return visitor_named("", settings)
    if not _has_provider():
        st.error(say("shell.sign_in_missing"))
        return None
    if not st.user.is_logged_in:
        browser.keep_link()
        st.info(say("shell.sign_in_why"))
        st.button(say("shell.sign_in"), on_click=st.login, type="primary")
        return None
    # An address that the provider has not checked could be anybody's.
    name = str(st.user.get("email") or "") if st.user.get("email_verified", True) is True else ""
    name = name or str(st.user.get("sub") or "")
    with st.sidebar:
        browser.follow_link(pages)
        st.caption(say("shell.signed_in", name=in_markdown(name)))
        st.button(say("shell.sign_out"), on_click=st.logout)
    return visitor_named(name, settings)


def _has_provider() -> bool:
    try:
        return "auth" in st.secrets
    except FileNotFoundError:
        return False
