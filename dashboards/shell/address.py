"""Widgets that the address bar keeps, so that a link shows the same page to whoever opens it."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TypeVar

import msgspec
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboards.shell import browser
from dashboards.shell.browser import Said
from dashboards.shell.hostile import in_code, in_markdown, visible_line
from dashboards.words import Words

T = TypeVar("T")

LONGEST_VALUE = 500
_ASKED = "address asked for"
_VISIT = "address"
_WRITTEN = "address written"
_SPOKEN = "address language"
SHARED = ("window", "from", "to", "zone")
"""Parameters that go along from page to page."""
MOST_SAID = 8
"""Values that are not known and are named; more are counted."""


class Visit(msgspec.Struct, frozen=True):
    """One stay on a page, from the link to it until another page is turned to.

    `said` is what the address says; `no_news` is what the browser may still send in its place: what it had
    before it was told. `is_written` once a run of the visit has ended.
    """

    page: str
    said: Said
    no_news: Sequence[Said]
    is_written: bool = False


class Address:
    """What the address bar says, for one run of the page.

    `page` is the last part of the page's path and `pages` are all pages' ("" for the root).

    A value that was changed in the bar (a link, the back button) goes before what the widget has; each
    widget's value is written back by `write`. Names are the parameters' and the widgets' keys.

    A value of the bar that is not known is said in one warning, which stands where the address was made: a
    link must not show something else unnoticed.
    """

    def __init__(self, say: Words, page: str = "", pages: Sequence[str] = ()) -> None:
        self._say = say
        self._pages = pages
        self._top = st.container()
        self._warning: DeltaGenerator | None = None
        self._said: list[str] = []
        self._is_retold = st.session_state.get(_SPOKEN, say.language) != say.language
        self._visit = _visit_of(page)
        # At once, so that a run in this one's place knows it.
        st.session_state[_VISIT] = self._visit
        self._now = self._visit.said
        self._before: Said = st.session_state.get(_WRITTEN, {})
        self._kept: dict[str, list[str]] = {}

    def text(self, name: str, default: str = "") -> str:
        """A parameter without a widget: as it stands in the bar, at most LONGEST_VALUE characters."""
        return next(iter(self._now.get(name, ())), default)[:LONGEST_VALUE]

    def one_of(self, name: str, known: Container[str]) -> str:
        """A parameter without a widget that is one of these; "" where it is not, which is said of a link."""
        given = self.text(name)
        if given in known:
            return given
        if given and self.is_new(name):
            self.say_left_out(name, given)
        return ""

    def say_left_out(self, name: str, value: str) -> None:
        """Say that the value is nothing that is known, and that the page is as without it."""
        self._tell(self._say("shell.link_left_out", name=in_markdown(name), value=in_code(value)))

    def say_instead(self, name: str, value: str, shown: str) -> None:
        """Say that the value is nothing that is known, and what is shown instead (Markdown)."""
        value = in_code(value)
        self._tell(self._say("shell.link_instead", name=in_markdown(name), value=value, shown=shown))

    def say_no_number(self, name: str, value: str) -> None:
        """Say that the value is no number, or none that it may be, and counts as nothing."""
        self._tell(self._say("shell.link_no_number", name=in_markdown(name), value=in_code(value)))

    def keep(self, name: str, *values: str) -> None:
        """Write the parameter as these values; none leaves it out."""
        self._kept[name] = list(values)

    def ask(self, page: str, parameters: Mapping[str, str | list[str]]) -> None:
        """Let the next run have this address if it is the page's. Also for a button's `on_click`."""
        said = {name: [value] if isinstance(value, str) else value for name, value in parameters.items()}
        st.session_state[_ASKED] = (page, said)

    def write(self) -> None:
        """Bring the bar in step: parameters that nothing kept go away.

        A visit's first address takes the place of what the browser has, a later one is an entry of its own
        in the browser's history: Back undoes one choice, or leaves the page.
        """
        page, kept = self._visit.page, self.current()
        if kept == self._now:
            # As it stands there: the same in another order would be another entry.
            kept = dict(self._now)
        # Told first and noted then: Streamlit may end this run in between, for another.
        if self._visit.is_written:
            st.query_params.from_dict(kept)
            no_news: list[Said] = [kept]
        else:
            browser.replace_address(page, self._pages, self._visit.no_news, kept)
            # The browser's script changes its history only: Streamlit's part of it sends what it had.
            no_news = [*self._visit.no_news, kept]
        st.session_state[_VISIT] = Visit(page, kept, no_news, is_written=True)
        st.session_state[_WRITTEN] = kept
        st.session_state[_SPOKEN] = self._say.language

    def said(self) -> dict[str, list[str]]:
        """What the bar said when this run began."""
        return dict(self._now)

    def current(self) -> dict[str, list[str]]:
        """The parameters that were kept in this run so far."""
        return {name: values for name, values in self._kept.items() if values}

    def shared(self) -> dict[str, str | list[str]]:
        """The parameters that a link to another page carries along."""
        return {name: self._kept[name] for name in SHARED if self._kept.get(name)}

    def is_new(self, *names: str) -> bool:
        """Whether the bar says something else of these than was written there."""
        return any(self._changed(name) for name in names)

    def given(self, name: str) -> list[str] | None:
        """What a widget is to take from the bar: what was changed there, or what it has forgotten; else None.

        Streamlit forgets a widget at a run without it, such as another page's. If a link back breaks that run
        off, or it fails, what was written last is still the widget's own address.
        """
        now = self._now.get(name)
        return now if now and name not in st.session_state else self._changed(name)

    def retell(self, key: str) -> None:
        """Say a widget's value anew in a run in another language: a browser keeps the words, and sends them
        back as they were.
        """
        if self._is_retold and key in st.session_state:
            st.session_state[key] = st.session_state[key]

    def selectbox(
        self,
        place: DeltaGenerator,
        label: str,
        name: str,
        options: Sequence[T],
        show: Callable[[T], str] = str,
        write: Callable[[T], str] = str,
        default: T | None = None,
    ) -> T:
        """One of the options (at least one); always in the bar, for the default may change."""
        given = self.given(name)
        named = {write(option): option for option in options}
        if given is not None and given[:1] and given[0] in named:
            st.session_state[name] = named[given[0]]
        elif given == [] or st.session_state.get(name) not in options:
            # A link that leaves it out shows the same to whoever opens it: the default.
            st.session_state[name] = options[0] if default is None else default
        self.retell(name)
        chosen: T = place.selectbox(label, options, format_func=show, key=name)
        if given and given[0] not in named:
            self.say_instead(name, given[0], in_markdown(show(chosen)))
        self.keep(name, write(chosen))
        return chosen

    def choice(
        self, place: DeltaGenerator, label: str, name: str, options: Sequence[str], show: Callable[[str], str]
    ) -> str:
        """One of a few options side by side; the first is left out of the bar. `show` gives Markdown."""
        given = self.given(name)
        if given is not None:
            st.session_state[name] = given[0] if given[:1] and given[0] in options else options[0]
        elif st.session_state.get(name) not in options:
            st.session_state[name] = options[0]
        self.retell(name)
        chosen = place.segmented_control(
            label, options, format_func=show, key=name, required=True, label_visibility="collapsed"
        )
        chosen = options[0] if chosen is None else chosen
        if given and given[0] not in options:
            self.say_instead(name, given[0], show(chosen))
        self.keep(name, *([] if chosen == options[0] else [chosen]))
        return chosen

    def multiselect(
        self,
        place: DeltaGenerator,
        label: str,
        name: str,
        options: Sequence[str],
        help: str | None = None,
        placeholder: str | None = None,
        show: Callable[[str], str] = str,
    ) -> tuple[str, ...]:
        """Any of the options; none means all. A value of the bar that is no option (any more) is one too, so
        that it can be taken out; `show` is asked for options only.
        """
        given = self.given(name)
        if given is not None:
            cut = dict.fromkeys(value[:LONGEST_VALUE] for value in given)
            st.session_state[name] = [value for value in cut if value or value in options]
        missing = [value for value in st.session_state.get(name, ()) if value not in options]
        if given is not None:
            for value in missing:
                told = in_code(value)
                self._tell(self._say("shell.link_kept", name=in_markdown(name), value=told))
        texts = {option: show(option) for option in options}
        # Two of one text are one to Streamlit.
        texts |= {value: f"“{visible_line(value)}”" for value in missing}
        self.retell(name)
        chosen = place.multiselect(
            label,
            list(texts),
            format_func=lambda value: texts.get(value, value),
            key=name,
            help=help,
            placeholder=placeholder or self._say("shell.all"),
        )
        self.keep(name, *chosen)
        return tuple(chosen)

    def text_input(
        self,
        place: DeltaGenerator,
        label: str,
        name: str,
        help: str | None = None,
        placeholder: str | None = None,
    ) -> str:
        """A line of text, without the space around it."""
        given = self.given(name)
        if given is not None:
            st.session_state[name] = next(iter(given), "")[:LONGEST_VALUE]
        text = place.text_input(
            label, key=name, help=help, placeholder=placeholder, max_chars=LONGEST_VALUE
        ).strip()
        self.keep(name, *([text] if text else []))
        return text

    def number_input(
        self,
        place: DeltaGenerator,
        label: str,
        name: str,
        *,
        least: float | None = None,
        most: float | None = None,
        step: float | None = None,
        help: str | None = None,
    ) -> float | None:
        """A number or nothing. What is no number in the bar, or out of range, counts as nothing."""
        given = self.given(name)
        if given is not None:
            text = next(iter(given), "")
            st.session_state[name] = number_given = _number(text, least, most)
            if text and number_given is None:
                self.say_no_number(name, text)
        number: float | None = place.number_input(
            label, min_value=least, max_value=most, value=None, step=step, key=name, help=help
        )
        self.keep(name, *([] if number is None else [f"{number:.15g}"]))
        return number

    def toggle(self, place: DeltaGenerator, label: str, name: str, help: str | None = None) -> bool:
        """On or off; off is left out of the bar."""
        given = self.given(name)
        if given is not None:
            st.session_state[name] = given[:1] == ["1"]
            if given and given[0] not in ("1", "0"):
                self.say_left_out(name, given[0])
        is_on = place.toggle(label, key=name, help=help)
        self.keep(name, *(["1"] if is_on else []))
        return is_on

    def _tell(self, text: str) -> None:
        """At once, for what comes after it may fail."""
        self._said.append(text)
        lines, more = self._said[:MOST_SAID], len(self._said) - MOST_SAID
        if more > 0:
            lines.append(self._say("shell.link_more", count=more))
        if self._warning is None:
            self._warning = self._top.empty()
        self._warning.warning("\n\n".join(lines))

    def _changed(self, name: str) -> list[str] | None:
        """The values in the bar if they are not those that were written there, else None.

        Turning to a page by the side bar empties the bar: that changes nothing.
        """
        now = self._now.get(name)
        if now == self._before.get(name) or not self._now:
            return None
        return now or []


def _visit_of(page: str) -> Visit:
    """The visit that this run belongs to, and what its address says."""
    sent = {name: st.query_params.get_all(name) for name in st.query_params}
    asked_of, asked = st.session_state.pop(_ASKED, (None, None))
    asked = asked if asked_of == page else None
    before: Visit | None = st.session_state.get(_VISIT)
    if before is None or before.page != page:
        # A run of the page before may have been ending: the browser then has that one's address.
        late = [] if before is None else [before.said]
        return Visit(page, sent if asked is None else asked, [sent, *late])
    if asked is None and sent in before.no_news:
        return before
    no_news = [*before.no_news, sent]
    return Visit(page, sent if asked is None else asked, no_news, before.is_written)


def _number(text: str, least: float | None, most: float | None) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if (
        not math.isfinite(number)
        or (least is not None and number < least)
        or (most is not None and number > most)
    ):
        return None
    return number
