"""Widgets that the address bar keeps, so that a link shows the same page to whoever opens it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

T = TypeVar("T")

LONGEST_VALUE = 500
_WRITTEN = "address written"
_SPOKEN = "address language"
SHARED = ("window", "from", "to", "zone")
"""Parameters that go along from page to page."""


class Address:
    """What the address bar says, for one run of the page.

    A value that was changed in the bar (a link, the back button) goes before what the widget had; each
    widget's value is written back by `write`. Names are the parameters' and the widgets' keys. `all_of_them`
    stands in a box of several where none is chosen.
    """

    def __init__(self, all_of_them: str | None = None, language: str = "") -> None:
        self._all_of_them = all_of_them
        self._language = language
        self._is_retold = st.session_state.get(_SPOKEN, language) != language
        self._now: dict[str, list[str]] = {name: st.query_params.get_all(name) for name in st.query_params}
        self._before: Mapping[str, list[str]] = st.session_state.get(_WRITTEN, {})
        self._kept: dict[str, list[str]] = {}

    def text(self, name: str, default: str = "") -> str:
        """A parameter without a widget: as it stands in the bar, at most LONGEST_VALUE characters."""
        return next(iter(self._now.get(name, ())), default)[:LONGEST_VALUE]

    def keep(self, name: str, *values: str) -> None:
        """Write the parameter as these values; none leaves it out."""
        self._kept[name] = list(values)

    def write(self) -> None:
        """Bring the bar in step: parameters that nothing kept go away."""
        kept = {name: values for name, values in self._kept.items() if values}
        # Also what stands there, as it stands there: a link may have been followed while the run before was
        # ending, whose address came after it. A browser that has it already does nothing.
        st.query_params.from_dict(dict(self._now) if kept == self._now else kept)
        st.session_state[_WRITTEN] = kept
        st.session_state[_SPOKEN] = self._language

    def current(self) -> dict[str, list[str]]:
        """The parameters that were kept in this run so far."""
        return {name: values for name, values in self._kept.items() if values}

    def shared(self) -> dict[str, str | list[str]]:
        """The parameters that a link to another page carries along."""
        return {name: self._kept[name] for name in SHARED if self._kept.get(name)}

    def is_new(self, *names: str) -> bool:
        """Whether the bar says something else of these than was written there."""
        return any(self._changed(name) for name in names)

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
        given = self._changed(name)
        named = {write(option): option for option in options}
        if given is not None and given[:1] and given[0] in named:
            st.session_state[name] = named[given[0]]
        elif st.session_state.get(name) not in options:
            st.session_state[name] = options[0] if default is None else default
        self.retell(name)
        chosen: T = place.selectbox(label, options, format_func=show, key=name)
        self.keep(name, write(chosen))
        return chosen

    def choice(
        self, place: DeltaGenerator, label: str, name: str, options: Sequence[str], show: Callable[[str], str]
    ) -> str:
        """One of a few options side by side; the first is left out of the bar. `show` gives Markdown."""
        given = self._changed(name)
        if given is not None:
            st.session_state[name] = given[0] if given[:1] and given[0] in options else options[0]
        elif st.session_state.get(name) not in options:
            st.session_state[name] = options[0]
        self.retell(name)
        chosen = place.segmented_control(
            label, options, format_func=show, key=name, required=True, label_visibility="collapsed"
        )
        chosen = options[0] if chosen is None else chosen
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
        """Any of the options; none means all. A value of the bar that is no option (any more) is one too."""
        given = self._changed(name)
        if given is not None:
            st.session_state[name] = [value[:LONGEST_VALUE] for value in given]
        missing = [value for value in st.session_state.get(name, ()) if value not in options]
        self.retell(name)
        chosen = place.multiselect(
            label,
            [*options, *missing],
            format_func=show,
            key=name,
            help=help,
            placeholder=placeholder or self._all_of_them,
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
        given = self._changed(name)
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
        given = self._changed(name)
        if given is not None:
            st.session_state[name] = _number(next(iter(given), ""), least, most)
        number: float | None = place.number_input(
            label, min_value=least, max_value=most, value=None, step=step, key=name, help=help
        )
        self.keep(name, *([] if number is None else [f"{number:.15g}"]))
        return number

    def toggle(self, place: DeltaGenerator, label: str, name: str, help: str | None = None) -> bool:
        """On or off; off is left out of the bar."""
        given = self._changed(name)
        if given is not None:
            st.session_state[name] = given[:1] == ["1"]
        is_on = place.toggle(label, key=name, help=help)
        self.keep(name, *(["1"] if is_on else []))
        return is_on

    def _changed(self, name: str) -> list[str] | None:
        """The values in the bar if they are not those that were written there, else None.

        Turning to a page by the side bar empties the bar: that changes nothing.
        """
        now = self._now.get(name)
        if now == self._before.get(name) or not self._now:
            return None
        return now or []


def _number(text: str, least: float | None, most: float | None) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if number != number or (least is not None and number < least) or (most is not None and number > most):
        return None
    return number
