"""How a page asks the store: briefly remembered, with a note and a button when it takes long, and cancelled
when nobody waits for it any more.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as NotYet
from functools import partial
from typing import Any, Concatenate, ParamSpec

import msgspec
import streamlit as st
from cachetools import TTLCache

from compare.store.answer import Result, bytes_of_rows
from compare.store.asked import Asked
from compare.store.client import Store
from dashboards.shell.flights import Flight, Run
from dashboards.shell.handles import Handles
from dashboards.shell.hidden_text import TextHidden, refuse_texts, without_text
from dashboards.words import Words

KEPT_S = 20.0
KEPT_BYTES = 64 * 1024 * 1024
NOTE_AFTER_S = 0.7
LOOK_EVERY_S = 0.25

P = ParamSpec("P")
Peek = Callable[[str, Mapping[str, Any] | None, Mapping[str, Any] | None], Result | None]


class Cancelled(Exception):  # noqa: N818 - no error: somebody pressed the button
    """The reader cancelled this query; it is not asked again until they say so."""

    def __init__(self, question: str) -> None:
        super().__init__("cancelled")
        self.question = question


class _Begun(Exception):  # noqa: N818 - no error: the question is under way
    """Ends what would go on with the answer."""


class _Ahead:
    """Answers what needs no waiting, and begins what does."""

    def __init__(self, peek: Peek) -> None:
        self._peek = peek

    def query(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Result:
        answer = self._peek(sql, parameters, settings)
        if answer is None:
            raise _Begun
        return answer


class Answers:
    """Answers of the last seconds and questions under way, of all sessions; the memory that the answers take
    is bounded.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: TTLCache[bytes, Result] = TTLCache(KEPT_BYTES, KEPT_S, clock, _bytes_of)
        self._under_way: dict[bytes, Flight] = {}
        self._lock = threading.Lock()

    def get(self, question: bytes) -> Result | None:
        """The answer, if it is not older than KEPT_S."""
        with self._lock:
            return self._kept.get(question)

    def ask(self, question: bytes, handles: Handles, run: Run) -> Flight:
        """Ask, or join those who are asking the same, until `leave`; the answer is remembered."""
        with self._lock:
            flight = self._under_way.get(question)
            if flight is not None and flight.join():
                return flight
            flight = self._under_way[question] = Flight()
            flight.join()
        flight.start(handles, run, partial(self._ended, question, flight))
        return flight

    def forget(self) -> None:
        """Ask anew from now on: what is under way was asked before."""
        with self._lock:
            self._kept.clear()
            self._under_way.clear()

    def _ended(self, question: bytes, flight: Flight, answer: Result | None) -> None:
        with self._lock:
            if self._under_way.get(question) is not flight:
                return
            del self._under_way[question]
            if answer is not None:
                # Not if it alone would fill the memory.
                with contextlib.suppress(ValueError):
                    self._kept[question] = answer


class Reader:
    """Asks one store for one run of a page, each question once. Called from the page's thread."""

    def __init__(self, handles: Handles, answers: Answers, say: Words, *, shows_text: bool = True) -> None:
        self._handles = handles
        self._answers = answers
        self._say = say
        self._answered: dict[bytes, Result] = {}
        self._ahead: dict[bytes, Flight] = {}
        self._waits = itertools.count()
        self.shows_text = shows_text

    def query(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Result:
        """The rows of one reading statement, perhaps some seconds old. `settings` are the query's own limits.

        Raises what the store raises, Cancelled, and TextHidden for texts that this session may not see.
        """
        self._check(sql)
        question = self._question(sql, parameters, settings)
        answer = self._known(question)
        if answer is None:
            name = _name_of(question)
            flight = self._ahead.pop(question, None)
            if flight is None:
                if st.session_state.get(name):
                    raise Cancelled(name)
                flight = self._ask(question, sql, parameters, settings)
            answer = self._answered[question] = self._waited_for(flight, name)
        return self._shown(answer)

    def some(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None,
        settings: Mapping[str, Any] | None,
        *,
        rows: int,
        size: int,
        is_download: bool = False,
        is_wanted: bool = False,
    ) -> Result:
        """The first rows and bytes of what a person asks. Raises as `query` does; nothing is remembered.

        `is_wanted` asks also what was cancelled before: somebody says so. For a download it may be called
        from any thread, and says nothing on the page.
        """
        self._check(sql)

        def run(store: Store) -> Result:
            return store.query_some(sql, parameters, settings, rows=rows, size=size)

        if is_download:
            with self._handles.lent() as store:
                answer = run(store)
        else:
            name = _name_of(self._question(sql, parameters, settings, rows))
            if is_wanted:
                again(name)
            if st.session_state.get(name):
                raise Cancelled(name)
            flight = Flight()
            flight.join()
            flight.start(self._handles, run, lambda _: None)
            answer = self._waited_for(flight, name)
        return self._shown(answer)

    def ahead(self, ask: Callable[Concatenate[Asked, P], Any], *about: P.args, **more: P.kwargs) -> None:
        """Begin what `ask`, a function of `dashboards.questions`, asks, and go on; its questions are answered
        when it is called again. It comes as far as it can without waiting.

        A page that begins ahead what it shows later is built while the store works.
        """
        with contextlib.suppress(_Begun, TextHidden):
            ask(_Ahead(self._peek), *about, **more)

    def forget(self) -> None:
        """Ask anew from now on, in all sessions: something was written."""
        self.close()
        self._answered.clear()
        self._answers.forget()

    def close(self) -> None:
        """The page is built, or given up: what was asked ahead and is not waited for is broken off."""
        while self._ahead:
            self._ahead.popitem()[1].leave()

    def _peek(
        self, sql: str, parameters: Mapping[str, Any] | None, settings: Mapping[str, Any] | None
    ) -> Result | None:
        """The answer if it is there; else the question is under way."""
        self._check(sql)
        question = self._question(sql, parameters, settings)
        answer = self._known(question)
        # One that was cancelled is not asked until somebody says so.
        if answer is None and question not in self._ahead and not st.session_state.get(_name_of(question)):
            self._ahead[question] = self._ask(question, sql, parameters, settings)
        return None if answer is None else self._shown(answer)

    def _known(self, question: bytes) -> Result | None:
        answer = self._answered.get(question)
        if answer is None:
            flight = self._ahead.get(question)
            if flight is None:
                answer = self._answers.get(question)
            elif flight.asked.done() and flight.asked.exception() is None:
                answer = flight.asked.result()
                self._ahead.pop(question).leave()
            if answer is not None:
                self._answered[question] = answer
        return answer

    def _shown(self, answer: Result) -> Result:
        return answer if self.shows_text else without_text(answer, self._say("shell.hidden"))

    def _ask(
        self,
        question: bytes,
        sql: str,
        parameters: Mapping[str, Any] | None,
        settings: Mapping[str, Any] | None,
    ) -> Flight:
        return self._answers.ask(
            question, self._handles, lambda store: store.query(sql, parameters, settings)
        )

    def _check(self, sql: str) -> None:
        if not self.shows_text:
            refuse_texts(sql)

    def _question(self, *asked: Any) -> bytes:
        return msgspec.json.encode([self._handles.where, *asked], enc_hook=str)

    def _waited_for(self, flight: Flight, name: str) -> Result:
        try:
            with contextlib.suppress(NotYet):
                return flight.asked.result(NOTE_AFTER_S)
            return self._watched(flight.asked, name)
        finally:
            flight.leave()

    def _watched(self, asked: Future[Result], name: str) -> Result:
        began = time.monotonic() - NOTE_AFTER_S
        place = st.empty()
        with place.container(horizontal=True, vertical_alignment="center"):
            note = st.empty()
            # One run may wait for a question twice: when it is asked once more.
            key = f"{name}-button-{next(self._waits)}"
            st.button(self._say("shell.cancel"), key=key, on_click=_mark, args=(name,))
        while True:
            # Where the page's run is stopped: by the button, another click, or a closed tab.
            note.caption(self._say("shell.reading", seconds=round(time.monotonic() - began)))
            wait([asked], LOOK_EVERY_S)
            if asked.done():
                # Also of an error: nothing is left to cancel.
                place.empty()
                return asked.result()


def again(question: str) -> None:
    """Let a cancelled query be asked once more."""
    st.session_state.pop(question, None)


def _name_of(question: bytes) -> str:
    """What the session's mark of the question is called, once it was cancelled."""
    return f"cancelled-{hash(question):x}"


def _mark(name: str) -> None:
    st.session_state[name] = True


def _bytes_of(answer: Result) -> int:
    return 64 + bytes_of_rows(answer.rows)
