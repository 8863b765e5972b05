"""What a person does about an alert: acknowledge it, silence it until a time, end a silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from compare.alerts.actions import LONGEST_TEXT, Matcher, Silence, Target
from compare.store.errors import StoreQueryError
from dashboards.questions import alerts as questions
from dashboards.shell import actions, states
from dashboards.shell.context import Context, utc_now
from dashboards.shell.hostile import in_code, in_markdown, visible
from ingest.errors import GnomonError

DONE = "alert action done"
ACTOR = "alert actor"
"""The name that was given last in this session."""
ACTS = "alert actions"
"""How many there were in this session."""
FILLED = "alert actor filled in"
"""The fields that have that name, or had it."""
UNTIL = "until"
USUAL = "8h"
LENGTHS: dict[str, timedelta | None] = {
    "1h": timedelta(hours=1),
    "4h": timedelta(hours=4),
    "8h": timedelta(hours=8),
    "24h": timedelta(hours=24),
    "3d": timedelta(days=3),
    "7d": timedelta(days=7),
    UNTIL: None,
}


def show_acts(context: Context, alert: Mapping[str, Any]) -> None:
    """What was done, and the buttons; without the right to act, why there are none."""
    say, clock = context.say, context.clock
    if done := st.session_state.pop(DONE, None):
        st.success(done)
    if alert["is_acknowledged"]:
        text = say(
            "alerts.is_acknowledged",
            name=in_markdown(str(alert["acknowledged_by"]), 100),
            time=clock.show(alert["acknowledged_at"]),
        )
        note = in_markdown(str(alert["acknowledged_note"]), 300)
        st.markdown(f":material/check: {text}" + (f": {note}" if note else ""))
    if alert["is_silenced"]:
        until = clock.show(alert["silenced_until"])
        st.markdown(f":material/notifications_off: {say('alerts.is_silenced', time=until)}")
    if not context.visitor.may_act:
        st.caption(say("alerts.may_not_act"))
        return
    held = [
        one
        for one in questions.silences(context.reader, str(alert["experiment"]), utc_now())
        if questions.is_covered(alert, one)
    ]
    with st.container(horizontal=True):
        with _popover(context, "acknowledge", ":material/check:"):
            _acknowledge(context, alert)
        with _popover(context, "silence", ":material/notifications_off:"):
            _silence(context, alert)
        if held:
            with _popover(context, "unsilence", ":material/notifications:"):
                _unsilence(context, alert, held)


def _popover(context: Context, act: str, icon: str) -> DeltaGenerator:
    """Another one after each act, for one that was opened stays open over what is said then."""
    return st.popover(context.say(f"alerts.{act}"), icon=icon, key=f"{act}-{st.session_state.get(ACTS, 0)}")


def _acknowledge(context: Context, alert: Mapping[str, Any]) -> None:
    say, key = context.say, f"ack-{alert['alert_id']}"
    st.caption(say("alerts.acknowledge_help"))
    with st.form(key, border=False):
        scope = _scope(context, ("alert", "group"), key)
        by, note = _who(context, key), _note(context, key)
        if st.form_submit_button(say("alerts.acknowledge"), type="primary"):
            target = Target(
                str(alert["experiment"]),
                str(alert["group_key"]),
                str(alert["alert_id"]) if scope == "alert" else "",
            )
            _try(
                context,
                by,
                lambda: actions.acknowledge(context, target, by=by, note=note),
                lambda name: say("alerts.done_acknowledge", name=name),
            )


def _silence(context: Context, alert: Mapping[str, Any]) -> None:
    say, clock, key = context.say, context.clock, f"silence-{alert['alert_id']}"
    st.caption(say("alerts.silence_help"))
    # Outside the form, so that the field for an end is there only where one is asked for.
    st.session_state.setdefault(f"{key}-for", USUAL)
    context.address.retell(f"{key}-for")
    length = st.selectbox(
        say("alerts.for"),
        list(LENGTHS),
        format_func=lambda name: _length_words(context, name),
        key=f"{key}-for",
    )
    # A place of its own: the fields of the form would begin anew if they moved.
    place, text = st.container(), ""
    if length == UNTIL:
        text = place.text_input(
            say("alerts.until", zone=clock.name),
            key=f"{key}-until",
            placeholder="2026-11-30 09:00",
            max_chars=40,
        )
    with st.form(key, border=False):
        scope = _scope(context, ("alert", "group", "slice", "metric", "candidate"), key)
        by, note = _who(context, key), _note(context, key)
        if st.form_submit_button(say("alerts.silence"), type="primary"):
            ends_at = _end(context, length, text)
            if ends_at is not None:
                matcher = matcher_of(alert, scope)
                _try(
                    context,
                    by,
                    lambda: actions.silence(context, matcher, ends_at=ends_at, by=by, note=note),
                    lambda name: say(
                        "alerts.done_silence", time=clock.show(ends_at, seconds=False), name=name
                    ),
                )


def _unsilence(context: Context, alert: Mapping[str, Any], held: list[Silence]) -> None:
    say, key = context.say, f"unsilence-{alert['alert_id']}"
    with st.form(key, border=False):
        one = st.selectbox(
            say("alerts.silence"),
            held,
            format_func=lambda one: visible(
                say(
                    "alerts.unsilence_one",
                    what=str(one.matcher),
                    time=context.clock.show(one.true_end, seconds=False),
                    name=one.acted_by,
                ),
                300,
            ),
            key=f"{key}-which",
        )
        by, note = _who(context, key), _note(context, key)
        if st.form_submit_button(say("alerts.unsilence"), type="primary"):
            _try(
                context,
                by,
                lambda: actions.unsilence(context, one, by=by, note=note),
                lambda name: say("alerts.done_unsilence", name=name),
            )


def matcher_of(alert: Mapping[str, Any], scope: str) -> Matcher:
    """Which alerts a silence of this scope covers, seen from one of them."""
    names = {
        "alert": ("experiment", "group_key", "alert_id"),
        "group": ("experiment", "group_key"),
        "slice": ("experiment", "candidate", "metric", "dimension", "slice"),
        "metric": ("experiment", "candidate", "metric"),
        "candidate": ("experiment", "candidate"),
    }[scope]
    return Matcher(**{name: str(alert[name]) for name in names})


def _scope(context: Context, scopes: tuple[str, ...], key: str) -> str:
    context.address.retell(f"{key}-scope")
    chosen: str = st.selectbox(
        context.say("alerts.scope"),
        scopes,
        format_func=lambda scope: context.say(f"alerts.scope_{scope}"),
        key=f"{key}-scope",
    )
    return chosen


def _who(context: Context, key: str) -> str:
    if context.visitor.name:
        st.caption(context.say("alerts.signed", name=in_markdown(context.visitor.name)))
        return context.visitor.name
    field, filled = f"{key}-by", st.session_state.setdefault(FILLED, set())
    if field not in filled:
        st.session_state[field] = st.session_state.get(ACTOR, "")
        filled.add(field)
    given: str = st.text_input(
        context.say("alerts.who"),
        placeholder=context.say("alerts.who_hint"),
        max_chars=actions.LONGEST_NAME,
        key=field,
    )
    return given


def _note(context: Context, key: str) -> str:
    say = context.say
    note: str = st.text_input(
        say("alerts.note"), help=say("alerts.note_help"), max_chars=LONGEST_TEXT, key=f"{key}-note"
    )
    return note


def _length_words(context: Context, name: str) -> str:
    if name == UNTIL:
        return context.say("alerts.for_until")
    if name == "1h":
        return context.say("alerts.for_hour")
    number = int(name[:-1])
    if name.endswith("d"):
        return context.say("alerts.for_days", days=number)
    return context.say("alerts.for_hours", hours=number)


def _end(context: Context, length: str, text: str) -> datetime | None:
    """The end that was asked for; None if it is no time, which is then said."""
    duration = LENGTHS[length]
    if duration is not None:
        return utc_now().replace(microsecond=0) + duration
    try:
        return context.clock.parse(text)
    except (ValueError, OverflowError):
        st.warning(context.say("alerts.until_bad", text=in_code(text)))
        return None


def _try(context: Context, by: str, act: Callable[[], None], done: Callable[[str], str]) -> None:
    """Act, and show the page anew with what `done` says of the name; else say why nothing was written."""
    try:
        name = actions.who(context, by)
        act()
    except GnomonError as error:
        may_not = isinstance(error, StoreQueryError) and error.code in states.NO_RIGHT
        st.error(context.say("alerts.no_write" if may_not else "alerts.not_done"))
        st.text(visible(str(error), 1_000))
        return
    st.session_state[DONE] = done(in_markdown(name))
    st.session_state[ACTOR] = name
    st.session_state[ACTS] = st.session_state.get(ACTS, 0) + 1
    st.session_state.pop(FILLED, None)
    context.address.write()
    st.rerun()
