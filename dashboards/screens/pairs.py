"""Pairs: the list, narrowed, sorted and turned page by page; the address bar keeps all of it."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from compare.result import VerdictKind
from compare.store.errors import StoreBusyError, StoreQueryError
from dashboards.questions import pairs as questions
from dashboards.questions.pairs import REGRESSIONS, SIDES, SORTS, Page, PairFilter, Place, Sort
from dashboards.questions.recent import MOST
from dashboards.questions.search import TextSearch, search
from dashboards.screens.pair_table import key_of, open_pair, show_pair_table
from dashboards.shell import states
from dashboards.shell.context import Context
from dashboards.shell.hostile import in_markdown, visible_line
from dashboards.shell.reader import Cancelled

ICON = ":material/list:"

VIEWS: dict[str, dict[str, Any]] = {
    "regressions": {"verdict": REGRESSIONS},
    "loops": {"family": ["repetition"], "side": "candidate_only"},
    "json": {"family": ["json"], "side": "candidate_only"},
    "near_ties": {"near_tie": "1", "sort": "newest"},
}
"""Views that are linked, by their name in words/pairs.py: the parameters of the address."""
MARK_CHARACTERS = 8


def show(context: Context) -> None:
    """The whole page."""
    say = context.say
    st.title(say("pairs.title"))
    with st.container(horizontal=True):
        for name, parameters in VIEWS.items():
            context.link("pairs", say(f"pairs.view_{name}"), icon=":material/bookmark:", **parameters)
        context.link("pairs", say("pairs.view_all"), icon=":material/filter_alt_off:")
    wanted, sort, typed = _filters(context)
    try:
        wanted = _with_text(context, wanted, typed)
        _list(context, wanted, sort)
    except (Cancelled, StoreQueryError, StoreBusyError) as error:
        # The filters above stay, so that they can be narrowed.
        states.explain(error, say, lambda: None)


def _filters(context: Context) -> tuple[PairFilter, Sort, str]:
    say, address = context.say, context.address
    known = questions.choices(context.reader, context.series)
    verdicts = [kind.value for kind in VerdictKind]
    columns = list(st.columns(4))
    chosen: dict[str, Any] = {
        "verdicts": _several(context, columns[0], "verdict", verdicts),
        "families": _several(context, columns[1], "family", known["family"]),
        "side": address.selectbox(
            columns[2], say("pairs.side"), "side", SIDES, show=lambda side: say(f"pairs.side_{side}")
        ),
    }
    sort: Sort = address.selectbox(
        columns[3], say("pairs.sort"), "sort", SORTS, show=lambda name: say(f"pairs.sort_{name}")
    )
    columns = list(st.columns([2, 1, 1]))
    typed = ""
    if context.visitor.shows_text:
        typed = address.text_input(
            columns[0],
            say("pairs.text"),
            "text",
            help=say("pairs.text_help"),
            placeholder=say("pairs.text_hint"),
        )
    else:
        columns[0].caption(say("pairs.text_hidden"))
    chosen["request_id"] = address.text_input(
        columns[1], say("pairs.request_id"), "request_id", help=say("pairs.request_id_help")
    )
    chosen["routes"] = _several(context, columns[2], "route", known["route"])
    names = ("tenant", "language", "severity_min", "kl_min", "similarity_max", "near_tie")
    with st.expander(say("pairs.more"), expanded=any(address.text(name) for name in names)):
        columns = list(st.columns(5))
        chosen["tenants"] = _several(context, columns[0], "tenant", known["tenant"])
        chosen["languages"] = _several(context, columns[1], "language", known["language"])
        for column, name, most, step in zip(
            columns[2:],
            ("severity_min", "kl_min", "similarity_max"),
            (1.0, None, 1.0),
            (0.1, 0.05, 0.1),
            strict=True,
        ):
            chosen[name] = address.number_input(
                column, say(f"pairs.{name}"), name, least=0.0, most=most, step=step
            )
        chosen["is_near_tie"] = address.toggle(
            st.container(), say("pairs.near_tie"), "near_tie", help=say("pairs.near_tie_help")
        )
    return PairFilter(start=context.window.start, end=context.window.end, **chosen), sort, typed


def _several(context: Context, place: DeltaGenerator, name: str, options: list[str]) -> tuple[str, ...]:
    say = context.say
    label, every = say(f"pairs.{name}"), say("pairs.every")
    about = say("pairs.verdict_help") if name == "verdict" else None
    return context.address.multiselect(place, label, name, options, help=about, placeholder=every)


def _with_text(context: Context, wanted: PairFilter, typed: str) -> PairFilter:
    if not typed:
        return wanted
    say = context.say
    found = search(context.reader, context.series, typed, wanted.start, wanted.end)
    if found is None:
        st.warning(say("pairs.no_word"))
        return wanted
    _say_searched(context, found)
    return msgspec.structs.replace(wanted, text=found)


def _say_searched(context: Context, found: TextSearch) -> None:
    words = ", ".join(f"“{in_markdown(word)}”" for word in found.words)
    start, end = context.clock.show(found.start), context.clock.show(found.end)
    st.caption(context.say("pairs.searched", words=words, start=start, end=end))


def _list(context: Context, wanted: PairFilter, sort: Sort) -> None:
    say = context.say
    is_whole = False
    if questions.is_of_newest(context.series, wanted, sort):
        help_text = say("pairs.whole_help")
        is_whole = context.address.toggle(st.container(), say("pairs.whole"), "whole", help=help_text)
    # A place belongs to one list: after a change of the filters the first page is shown.
    mark = _mark(context)
    written = context.address.text("page")
    place = questions.place_of(written.removeprefix(mark)) if written.startswith(mark) else None
    page = questions.page(context.reader, context.series, wanted, sort, place, is_whole=is_whole)
    if page.since is not None:
        start = context.clock.show(page.since)
        st.info(say("pairs.recent", most=f"{MOST:,}", start=start), icon=":material/schedule:")
    if place is not None:
        context.address.keep("page", written)
    elif written and context.address.is_new("page"):
        context.address.say_instead("page", written, say("pairs.first_page"))
    if page.rows.empty:
        st.info(say("pairs.none" if place is None else "pairs.no_more"))
        if place is not None:
            st.button(say("pairs.first_page"), on_click=_turn, args=(context, mark, None))
        return
    st.caption(_counted(context, page))
    st.session_state["listed"] = (
        context.series.experiment,
        context.series.candidate,
        [key_of(context, row) for _, row in page.rows.iterrows()],
        context.address.current(),
    )
    chosen = show_pair_table(context, page.rows, f"pairs-{mark}-{written}", first_row=page.first_row)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name, icon, turned_to in (
            ("first", ":material/first_page:", page.before and (None,)),
            ("previous", ":material/chevron_left:", page.before and (page.before,)),
            ("next", ":material/chevron_right:", page.behind and (page.behind,)),
        ):
            if turned_to:
                st.button(
                    say(f"pairs.{name}_page"), icon=icon, on_click=_turn, args=(context, mark, *turned_to)
                )
        number = st.selectbox(
            say("pairs.open"),
            range(len(page.rows)),
            index=None,
            format_func=lambda row: _named(page, row),
            placeholder=say("pairs.open_hint"),
            key=f"open-{mark}-{written}",
            width=360,
        )
    if number is not None:
        chosen = key_of(context, page.rows.iloc[number])
    if chosen is not None:
        open_pair(context, chosen)


def _named(page: Page, row: int) -> str:
    return f"{page.first_row + row + 1} · {visible_line(str(page.rows['request_id'].iloc[row]), 60)}"


def _counted(context: Context, page: Page) -> str:
    say = context.say
    first, last = page.first_row + 1, page.first_row + len(page.rows)
    counted = say("pairs.rows_more" if page.behind is not None else "pairs.rows", first=first, last=last)
    if context.series.until is None:
        return counted
    if not page.is_rolled:
        return counted if page.since is not None else f"{counted} {say('pairs.from_pairs')}"
    has_window = context.window.start is not None or context.window.end is not None
    return f"{counted} {say('pairs.from_rollup_window' if has_window else 'pairs.from_rollup')}"


def _mark(context: Context) -> str:
    """Short for one list: its series, range, filters and sort, as the address has them."""
    kept = {
        name: values for name, values in context.address.current().items() if name not in ("page", "zone")
    }
    return hashlib.sha256(msgspec.json.encode(kept, order="sorted")).hexdigest()[:MARK_CHARACTERS]


def _turn(context: Context, mark: str, place: Place | None) -> None:
    parameters: dict[str, str | list[str]] = {**context.address.current()}
    parameters.pop("page", None)
    if place is not None:
        parameters["page"] = mark + place.written()
    context.address.ask("pairs", parameters)
