"""What every page works with: the experiment, the time range, the reader, and links to the other pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage

from dashboards.questions import summary
from dashboards.questions.pair import PairKey
from dashboards.shell.address import Address
from dashboards.shell.clock import Clock
from dashboards.shell.hostile import in_code, in_markdown
from dashboards.shell.reader import Reader
from dashboards.shell.sign_in import Visitor
from dashboards.words import Words

WINDOWS: dict[str, timedelta | None] = {
    "all": None,
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
FIXED = "fixed"


class Window(msgspec.Struct, frozen=True):
    """From `start` on and before `end`, both UTC and by `mirrored_at`; None is open."""

    start: datetime | None = None
    end: datetime | None = None


class Context(msgspec.Struct, frozen=True):
    """One run of one page."""

    reader: Reader
    series: summary.Series
    window: Window
    clock: Clock
    say: Words
    visitor: Visitor
    address: Address
    pages: Mapping[str, StreamlitPage]

    def link(
        self,
        page: str,
        label: str,
        *,
        to: DeltaGenerator | None = None,
        icon: str | None = None,
        **where: Any,
    ) -> None:
        """A link to a page of this experiment and range. `label` is Markdown; `where` are its parameters
        (a list for several values).
        """
        (to or st).page_link(self.pages[page], label=label, icon=icon, query_params=self.parameters(**where))

    def go(self, page: str, **where: Any) -> None:
        """Turn to a page now."""
        self.address.ask(self.pages[page].url_path, self.parameters(**where))
        # Streamlit first writes the parameters to the address of this page: what stands there already adds
        # no entry to the browser's history.
        st.switch_page(self.pages[page], query_params=self.address.said())

    def parameters(self, **where: Any) -> dict[str, str | list[str]]:
        """The address bar's parameters of a page of this experiment and range."""
        kept = {
            "experiment": self.series.experiment,
            "candidate": self.series.candidate,
            **self.address.shared(),
        }
        given = {
            name: [str(one) for one in value] if isinstance(value, list | tuple) else str(value)
            for name, value in where.items()
            if value is not None and value != "" and value != ()
        }
        return {**kept, **given}

    def pair_parameters(self, key: PairKey) -> dict[str, Any]:
        """What `link("pair", ...)` needs to show one pair."""
        return {"topic_id": key.topic_id, "partition": key.partition, "offset": key.offset}


def choose_series(reader: Reader, address: Address, say: Words) -> summary.Series | None:
    """The experiment and candidate that the side bar shows; None if the store holds none."""
    known = summary.experiments(reader)
    if not known:
        return None
    names = [(row["experiment"], row["candidate"]) for row in known]
    asked = (address.text("experiment"), address.text("candidate"))
    lost = ""
    if any(asked) and asked not in names:
        # A link may leave one of the two out.
        first = next(
            (name for name in names if asked[0] in ("", name[0]) and asked[1] in ("", name[1])), None
        )
        if first is None:
            first = next((name for name in names if asked[0] == name[0]), None)
            lost = "experiment" if asked[0] and first is None else "candidate"
        asked = first or ("", "")
    # Streamlit forgets what was chosen where a run failed before it came here.
    if asked in names and ("series" not in st.session_state or address.is_new("experiment", "candidate")):
        st.session_state["series"] = asked
    if st.session_state.get("series") not in names:
        st.session_state["series"] = names[0]
    chosen: tuple[str, str] = st.sidebar.selectbox(
        say("shell.experiment"), names, format_func=lambda name: f"{name[0]}: {name[1]}", key="series"
    )
    if lost:
        address.say_instead(lost, address.text(lost), in_markdown(f"{chosen[0]}: {chosen[1]}"))
    address.keep("experiment", chosen[0])
    address.keep("candidate", chosen[1])
    return summary.series_of(reader, known[names.index(chosen)])


def choose_window(address: Address, clock: Clock, say: Words, now: datetime) -> Window:
    """The time range of the side bar."""
    texts = {name: _window_words(name, say) for name in (*WINDOWS, FIXED)}
    name = address.selectbox(
        st.sidebar, say("shell.window"), "window", list(texts), show=lambda name: texts[name]
    )
    if name != FIXED:
        length = WINDOWS[name]
        # By the minute, so that the same question within it is asked once.
        return Window(None if length is None else now.replace(second=0, microsecond=0) - length)
    left, right = st.sidebar.columns(2)
    start = _time(address.text_input(left, say("shell.window_start"), "from"), clock, say)
    end = _time(address.text_input(right, say("shell.window_end"), "to"), clock, say)
    if start and end and end <= start:
        st.sidebar.warning(say("shell.window_backwards"))
        return Window(start)
    return Window(start, end)


def utc_now() -> datetime:
    """The time now."""
    return datetime.now(UTC)


def _time(text: str, clock: Clock, say: Words) -> datetime | None:
    if not text:
        return None
    try:
        return clock.parse(text)
    except (ValueError, OverflowError):
        st.sidebar.warning(say("shell.window_bad", text=in_code(text)))
        return None


def _window_words(name: str, say: Words) -> str:
    if name in ("all", FIXED):
        return say(f"shell.window_{name}")
    if name == "1h":
        return say("shell.window_hour")
    number = int(name[:-1])
    return (
        say("shell.window_days", days=number)
        if name.endswith("d")
        else say("shell.window_hours", hours=number)
    )
