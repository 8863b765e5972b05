"""What people do about alerts on the page: the one place of the explorer that writes.

The functions are those of `gnomon alerts`; a handle that may write is open for one call only.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from compare.alerts import actions
from compare.store.client import Store
from dashboards.connection import connect_to_act
from dashboards.shell.context import Context, utc_now
from ingest.errors import SettingsError

T = TypeVar("T")

LONGEST_NAME = 100


def acknowledge(context: Context, target: actions.Target, *, by: str, note: str) -> None:
    """Note that somebody looks after an alert or group.

    Raises SettingsError if the visitor may not act or gives no name, and what the store raises; so do the
    others.
    """
    name = who(context, by)
    _act(context, lambda store: actions.acknowledge(store, target, by=name, note=note))


def silence(context: Context, matcher: actions.Matcher, *, ends_at: datetime, by: str, note: str) -> None:
    """Tell nobody of these alerts until `ends_at`. Raises SettingsError for an end that does not fit."""
    name = who(context, by)
    _act(
        context,
        lambda store: actions.silence(store, matcher, ends_at=ends_at, now=utc_now(), by=name, note=note),
    )


def unsilence(context: Context, one: actions.Silence, *, by: str, note: str) -> None:
    """End a silence now."""
    name = who(context, by)
    _act(context, lambda store: actions.unsilence(store, one, by=name, note=note))


def who(context: Context, given: str) -> str:
    """Who acts: the name that was signed in with, which no field overrides; else the given one.

    Raises SettingsError for none: what was done must say by whom.
    """
    name = context.visitor.name or " ".join(given.split())
    if not name:
        raise SettingsError(context.say("alerts.who_missing"))
    return name[:LONGEST_NAME]


def _act(context: Context, do: Callable[[Store], T]) -> T:
    # Asked here too: a page that shows a button by mistake must not be enough.
    if not context.visitor.may_act:
        raise SettingsError(context.say("alerts.may_not_act"))
    with connect_to_act() as store:
        done = do(store)
    context.reader.forget()
    return done
