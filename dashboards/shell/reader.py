"""How a page asks the store: briefly remembered, with a note and a button when it takes long, and cancelled
when nobody waits for it any more.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as NotYet
from typing import Any

import msgspec
import streamlit as st
from cachetools import TTLCache

from compare.store.answer import Result, bytes_of
from compare.store.client import Store
from dashboards.words import Words

KEPT_S = 20.0
KEPT_BYTES = 64 * 1024 * 1024
NOTE_AFTER_S = 0.7
LOOK_EVERY_S = 0.25
LONGEST_GOODBYE_S = 5.0

HIDDEN = "(hidden)"
TEXT_VIEWS = frozenset(
    {
        "dead_letters_v1",
        "golden_cases_v1",
        "golden_results_v1",
        "observations_v1",
        "positions_v1",
        "requests_v1",
        "tokens_v1",
    }
)
"""Views with texts of prompts or answers."""
TEXT_COLUMNS = frozenset(
    {
        "candidate_top1_token",
        "differing_paths",
        "divergence_candidate_token",
        "divergence_reference_token",
        "message",
        "reasons",
        "reference_top1_token",
        "search_text",
        "token",
    }
)
"""Columns of the other views that quote them."""
_WORD = re.compile(r"\w+")


class Cancelled(Exception):  # noqa: N818 - no error: somebody pressed the button
    """The reader cancelled this query; it is not asked again until they say so."""

    def __init__(self, question: str) -> None:
        super().__init__("cancelled")
        self.question = question


class TextHidden(Exception):  # noqa: N818 - no error: a role without texts asked for one
    """The role of this session reads no texts of prompts and answers."""


class Answers:
    """Answers of the last seconds, of all sessions; the memory that they take is bounded."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: TTLCache[bytes, Result] = TTLCache(KEPT_BYTES, KEPT_S, clock, _bytes_of)
        self._lock = threading.Lock()

    def get(self, question: bytes) -> Result | None:
        """The answer, if it is not older than KEPT_S."""
        with self._lock:
            return self._kept.get(question)

    def keep(self, question: bytes, answer: Result) -> None:
        """Remember it, unless it alone would fill the memory."""
        with self._lock, contextlib.suppress(ValueError):
            self._kept[question] = answer

    def forget(self) -> None:
        """Ask anew from now on."""
        with self._lock:
            self._kept.clear()


class Reader:
    """Asks one store for one session. Called from the page's thread."""

    def __init__(self, store: Store, answers: Answers, say: Words, *, shows_text: bool = True) -> None:
        self._store = store
        self._answers = answers
        self._say = say
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
        question = msgspec.json.encode([self._store.where, sql, parameters, settings], enc_hook=str)
        answer = self._answers.get(question)
        if answer is None:
            answer = self._ask(question, lambda: self._store.query(sql, parameters, settings))
            self._answers.keep(question, answer)
        return answer if self.shows_text else _without_text(answer)

    def some(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None,
        settings: Mapping[str, Any] | None,
        *,
        rows: int,
        size: int,
        is_download: bool = False,
    ) -> Result:
        """The first rows and bytes of what a person asks. Raises as `query` does; nothing is remembered.

        For a download it may be called from any thread, and says nothing on the page.
        """
        self._check(sql)
        if is_download:
            with self._store.another() as store:
                answer = store.query_some(sql, parameters, settings, rows=rows, size=size)
        else:
            question = msgspec.json.encode([self._store.where, sql, parameters, settings, rows], enc_hook=str)
            answer = self._ask(
                question, lambda: self._store.query_some(sql, parameters, settings, rows=rows, size=size)
            )
        return answer if self.shows_text else _without_text(answer)

    def forget(self) -> None:
        """Ask anew from now on, in all sessions: something was written."""
        self._answers.forget()

    def _check(self, sql: str) -> None:
        if not self.shows_text and not TEXT_VIEWS.isdisjoint(_WORD.findall(sql)):
            raise TextHidden

    def _ask(self, question: bytes, run: Callable[[], Result]) -> Result:
        name = f"cancelled-{hash(question):x}"
        if st.session_state.get(name):
            raise Cancelled(name)
        asked: Future[Result] = Future()

        def ask() -> None:
            try:
                asked.set_result(run())
            except BaseException as error:  # noqa: BLE001 - handed to the page's thread, whatever it is
                asked.set_exception(error)

        threading.Thread(target=ask, name="explorer-query", daemon=True).start()
        with self._given_up_if_left(asked):
            with contextlib.suppress(NotYet):
                return asked.result(NOTE_AFTER_S)
            return self._watched(asked, name)

    def _watched(self, asked: Future[Result], name: str) -> Result:
        began = time.monotonic() - NOTE_AFTER_S
        place = st.empty()
        with place.container(horizontal=True, vertical_alignment="center"):
            note = st.empty()
            st.button(self._say("shell.cancel"), key=f"{name}-button", on_click=_mark, args=(name,))
        while True:
            # Where the page's run is stopped: by the button, another click, or a closed tab.
            note.caption(self._say("shell.reading", seconds=round(time.monotonic() - began)))
            with contextlib.suppress(NotYet):
                answer = asked.result(LOOK_EVERY_S)
                place.empty()
                return answer

    @contextlib.contextmanager
    def _given_up_if_left(self, asked: Future[Result]) -> Iterator[None]:
        try:
            yield
        finally:
            if not asked.done():
                self._store.interrupt()
                # However it ends, nobody waits for that: an error would take the place of the rerun.
                wait([asked], LONGEST_GOODBYE_S)


def again(question: str) -> None:
    """Let a cancelled query be asked once more."""
    st.session_state.pop(question, None)


def _mark(name: str) -> None:
    st.session_state[name] = True


def _without_text(answer: Result) -> Result:
    hidden = [index for index, name in enumerate(answer.column_names) if name in TEXT_COLUMNS]
    if not hidden:
        return answer
    rows = [list(row) for row in answer.rows]
    for row in rows:
        for index in hidden:
            row[index] = [HIDDEN] if isinstance(row[index], list | tuple) else HIDDEN
    return msgspec.structs.replace(answer, rows=[tuple(row) for row in rows])


def _bytes_of(answer: Result) -> int:
    return 64 + sum(map(bytes_of, answer))
