"""What a page shows when it cannot show its figures: empty, cancelled, no permission, away, refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from compare.store.errors import StoreBusyError, StoreQueryError
from dashboards.shell.hidden_text import TextHidden
from dashboards.shell.hostile import visible
from dashboards.shell.reader import Cancelled, again
from dashboards.words import Words
from ingest.errors import GnomonError, RetryError

NO_RIGHT = frozenset({164, 192, 193, 194, 195, 497, 516})
"""ClickHouse's codes: READONLY, unknown users and passwords, ACCESS_DENIED, AUTHENTICATION_FAILED."""
TOO_LARGE = frozenset({158, 159, 160, 202, 241, 307, 396})
"""Too many rows, bytes, queries at once, too long, MEMORY_LIMIT_EXCEEDED."""
NOT_THERE = frozenset({16, 47, 60, 81})
"""NO_SUCH_COLUMN_IN_TABLE, UNKNOWN_IDENTIFIER, UNKNOWN_TABLE, UNKNOWN_DATABASE."""
ABORTED = 236
UNKNOWN_FUNCTION = 46
NO_SUCH_VIEW = "Unknown table function"
"""How a view with parameters is missed."""

EXPECTED = (Cancelled, TextHidden, GnomonError)
"""What `explain` has words for."""


def explain(
    error: Exception,
    say: Words,
    try_again: Callable[[], None],
    *,
    section: str = "",
    instead: Mapping[str, str] | None = None,
) -> None:
    """Say why there are no figures, and what can be done.

    `section` names the part of the page, where several may fail at once; `instead` has other words for some
    headlines, by the key of `dashboards.words`.
    """
    if isinstance(error, Cancelled):
        st.info(say("shell.cancelled"), icon="✋")
        st.button(say("shell.again"), on_click=again, args=(error.question,), key=f"again-{section}")
        return
    if isinstance(error, TextHidden):
        st.info(say("shell.text_hidden"), icon="🔒")
        return
    headline = _headline(error)
    st.error(say((instead or {}).get(headline, headline)))
    st.text(visible(str(error), 2_000))
    if isinstance(error, RetryError) and not is_too_large(error):
        st.caption(say("shell.owner_gone_hint" if is_owner_gone(error) else "shell.away_hint"))
    st.button(say("shell.again"), on_click=try_again, key=f"again-{section}")


def is_too_large(error: Exception) -> bool:
    """Whether the query went over a limit: asked again as it is, it will again."""
    return isinstance(error, StoreQueryError | StoreBusyError) and error.code in TOO_LARGE


def is_owner_gone(error: Exception) -> bool:
    """Whether another process owned the embedded folder, and ended: asked again, the next owner answers, or
    the explorer itself.
    """
    code = error.code if isinstance(error, StoreBusyError) else None
    return isinstance(error, RetryError) and code in (None, ABORTED) and "(through process " in str(error)


def _headline(error: Exception) -> str:
    if is_too_large(error):
        return "shell.too_large"
    if not isinstance(error, StoreQueryError):
        return "shell.owner_gone" if is_owner_gone(error) else "shell.away"
    if error.code in NO_RIGHT:
        return "shell.no_right"
    if error.code in NOT_THERE or (error.code == UNKNOWN_FUNCTION and NO_SUCH_VIEW in str(error)):
        return "shell.old_store"
    return "shell.refused"
