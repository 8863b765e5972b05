"""The explorer: what stands around every page. Started by `gnomon dashboard`."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from dashboards.connection import connect
from dashboards.screens import SCREENS
from dashboards.shell import browser, sign_in, states
from dashboards.shell.address import Address
from dashboards.shell.clock import Clock, all_zones, is_zone
from dashboards.shell.context import Context, choose_series, choose_window, utc_now
from dashboards.shell.garbage import leave_out_modules
from dashboards.shell.handles import Handles
from dashboards.shell.reader import Answers, Reader
from dashboards.words import LANGUAGES, Language, Words, language_of
from ingest.errors import RetryError

Pages = Mapping[str, Any]
LOOKED_AGAIN = "looked again"
# Streamlit tints the link that the keyboard has come to, hardly to be seen.
FOCUS = "a:focus-visible { outline: 2px solid !important; outline-offset: 1px; }"
# Streamlit's own file of a table has no apostrophe before what a spreadsheet runs; the SQL page's has.
NO_FILE = '[data-testid=stElementToolbarButton]:has([aria-label^="Download as CSV"]) { display: none; }'

logger = logging.getLogger(__name__)


@st.cache_resource(show_spinner=False, on_release=Handles.close)
def handles() -> Handles:
    """Those of all sessions."""
    return Handles(connect())


@st.cache_resource(show_spinner=False)
def answers() -> Answers:
    """One for all sessions."""
    return Answers()


def connect_anew() -> None:
    """Forget the store and its answers."""
    answers().forget()
    handles.clear()


def language() -> Language:
    """The language that was chosen, else the browser's."""
    chosen: Language | None = st.session_state.get("page_language")
    return chosen or language_of(st.context.locale)


def choose_zone(address: Address, say: Words) -> Clock:
    """The time zone of the side bar: UTC, as SQL has it, unless another is chosen or linked."""
    own = st.context.timezone or ""
    first = ["UTC", *([own] if own != "UTC" and is_zone(own) else [])]
    zones = [*first, *(name for name in all_zones() if name not in first)]
    return Clock(address.selectbox(st.sidebar, say("shell.zone"), "zone", zones))


def choose_language(say: Words) -> None:
    """The language of the next run."""
    st.sidebar.selectbox(
        say("shell.language"),
        list(LANGUAGES),
        index=list(LANGUAGES).index(say.language),
        format_func=lambda name: LANGUAGES[name],
        key="page_language",
    )


def around(say: Words, pages: Pages, address: Address, visitor: sign_in.Visitor) -> Context | None:
    """The side bar, and what it says to the page; None if the store is empty, which is then said.

    It is drawn by the main script and not by the page, so that its values stay from page to page.
    """
    reader = Reader(handles(), answers(), say, shows_text=visitor.shows_text)
    series = choose_series(reader, address, say)
    window = clock = None
    if series is not None:
        clock = choose_zone(address, say)
        window = choose_window(address, clock, say, utc_now())
    choose_language(say)
    with st.sidebar:
        browser.copy_plain()
    if series is None or window is None or clock is None:
        st.info(say("shell.empty"))
        return None
    st.sidebar.button(say("shell.refresh"), icon=":material/refresh:", on_click=answers().forget)
    note = say("shell.as_of", time=clock.show(utc_now()))
    if series.until is not None:
        note = say("shell.up_to", time=clock.show(series.until, seconds=False))
    st.sidebar.caption(note)
    return Context(reader, series, window, clock, say, visitor, address, pages)


def show_all(say: Words) -> None:
    """Navigation, side bar and the page that was turned to."""
    now: dict[str, Context] = {}
    pages: dict[str, Any] = {}

    def show(name: str) -> None:
        SCREENS[name].show(now["context"])
        now["context"].address.write()

    for name, screen in SCREENS.items():
        pages[name] = st.Page(
            partial(show, name),
            title=say(f"shell.{name}"),
            icon=screen.ICON,
            url_path=name,
            default=not pages,
        )
    page = st.navigation(list(pages.values()))
    paths = [one.url_path for one in pages.values()]
    visitor = sign_in.visitor(sign_in.settings_of(), say, paths)
    context = around(say, pages, Address(say, page.url_path, paths), visitor) if visitor else None
    if context is not None:
        now["context"] = context
        try:
            page.run()
        finally:
            context.reader.close()


def main() -> None:
    """The explorer, or why it shows nothing; a store whose owner has ended is looked for once more."""
    st.set_page_config(page_title="Gnomon", page_icon="🌘", layout="wide")
    st.html(f"<style>{FOCUS} {NO_FILE}</style>")
    say = Words(language())
    leave_out_modules()
    try:
        show_all(say)
        st.session_state.pop(LOOKED_AGAIN, None)
    except states.EXPECTED as error:
        is_away = isinstance(error, RetryError) and not states.is_too_large(error)
        if is_away and not st.session_state.get(LOOKED_AGAIN):
            st.session_state[LOOKED_AGAIN] = True
            connect_anew()
            st.rerun()
        states.explain(error, say, connect_anew)
    except Exception:
        if st.get_option("client.showErrorDetails") != "none":
            raise
        fail(say)


def fail(say: Words) -> None:
    """Say that the page failed, and log why under the number that is shown: a reader is shown no code.

    Streamlit's own stops and reruns are no `Exception`.
    """
    number = uuid.uuid4().hex[:8]
    logger.exception("the page failed, number %s", number)
    st.error(say("shell.failed"), icon=":material/error:")
    st.text(say("shell.failed_where", number=number, time=Clock().show(utc_now())))
    st.button(say("shell.again"), key="again-failed")


# Streamlit runs this as its main module; a process that is spawned beside it only loads it.
if __name__ == "__main__":
    main()
