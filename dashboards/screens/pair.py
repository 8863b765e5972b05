"""One pair: the two answers side by side, where they part, and everything that is known of them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dashboards.pair_views.prompt import turns_of
from dashboards.questions import pair as questions
from dashboards.questions import pairs as lists
from dashboards.questions.pair import PairKey
from dashboards.screens import pair_answers, pair_beside
from dashboards.shell.context import Context
from dashboards.shell.hostile import in_markdown, visible, visible_line
from dashboards.words import TEXTS

ICON = ":material/compare:"

PROMPT_CHARACTERS = 4_000
PROMPT_LINES = 3
LINE_PX = 26
BADGES: dict[str, Any] = {
    "match": "green",
    "equivalent": "blue",
    "diverged": "yellow",
    "candidate_worse": "orange",
    "candidate_error": "red",
    "both_faulty": "violet",
    "both_error": "violet",
}
MAX_REASONS = 3
NOT_LISTED: tuple[str, str, list[PairKey], dict[str, Any]] = ("", "", [], {})
"""What the list shows, before it was shown."""


def show(context: Context) -> None:
    """The whole page."""
    say = context.say
    key = _key(context)
    if key is None:
        st.title(say("pair.title"))
        st.info(say("pair.choose"))
        context.link("pairs", say("shell.pairs"), icon=":material/list:")
        return
    if _listed(key) is None:
        context.reader.ahead(lists.worst_keys, context.series, context.window.start, context.window.end)
    found = questions.pair(context.reader, key)
    if found.empty:
        st.title(say("pair.title"))
        st.warning(say("pair.gone"))
        context.link("pairs", say("shell.pairs"), icon=":material/list:")
        return
    row = found.iloc[0]
    day = row["ingested_at"].date()
    if context.visitor.shows_text:
        context.reader.ahead(questions.beside, key, day)
    pair_beside.ahead(context, key, row)
    _header(context, key, row)
    if not context.visitor.shows_text:
        st.info(say("shell.text_hidden"), icon="🔒")
        pair_beside.show_without_texts(context, key, row)
        return
    beside = questions.beside(context.reader, key, day)
    body = "" if beside.request is None else str(beside.request["body"])
    _prompt(context, body)
    pair_answers.show_answers(context, row, beside, body)
    pair_beside.show_all(context, key, row, beside)


def _key(context: Context) -> PairKey | None:
    """The pair of the address, else the one that was looked at last of this series."""
    address, series = context.address, context.series
    given = tuple(address.text(name) for name in ("topic_id", "partition", "offset"))
    kept = st.session_state.get("pair_shown")
    if not given[0] and kept is not None and kept[:2] == (series.experiment, series.candidate):
        given = kept[2:]
    topic_id, partition, offset = given
    if not topic_id:
        return None
    wrong = [
        (name, value)
        for name, value, end in (("partition", partition, 2**32), ("offset", offset, 10**18))
        if not (value.isascii() and value.isdigit() and len(value) < 19 and int(value) < end)
    ]
    for name, value in wrong:
        address.say_no_number(name, value)
    if wrong:
        return None
    for name, value in zip(("topic_id", "partition", "offset"), given, strict=True):
        address.keep(name, value)
    st.session_state["pair_shown"] = (series.experiment, series.candidate, *given)
    return PairKey(series.experiment, series.candidate, topic_id, int(partition), int(offset))


def _header(context: Context, key: PairKey, row: pd.Series) -> None:
    say, clock = context.say, context.clock
    title = in_markdown(str(row["request_id"]), 60) or f"{key.partition}/{key.offset}"
    st.subheader(f"{say('pair.title')} {title}", anchor=False)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        color = BADGES.get(row["verdict"], "gray")
        st.badge(in_markdown(row["verdict"]), color=color, help=say("pairs.verdict_help"))
        if not pd.isna(row["severity"]):
            st.badge(say("pair.severity", severity=f"{row['severity']:.2f}"), color="gray")
        _cause(context, str(row["probable_cause"]))
        for name in ("route", "tenant", "language"):
            if row[name]:
                st.badge(f"{say(f'pairs.{name}_short')}: {in_markdown(row[name], 40)}", color="gray")
        for tag in row["tags"]:
            st.badge(in_markdown(tag), color="yellow")
        _in_list(context, key)
    facts = say(
        "pair.facts",
        mirrored=clock.show(row["mirrored_at"]),
        ingested=clock.show(row["ingested_at"]),
        mode=in_markdown(row["mode"]),
    )
    st.caption(f"{facts} · {in_markdown(str(row['reference']))} → {in_markdown(key.candidate)}")
    reasons = [visible_line(str(reason), 300) for reason in row["reasons"]]
    if reasons:
        st.text("\n".join(reasons[:MAX_REASONS]))
        if len(reasons) > MAX_REASONS:
            with st.expander(say("pair.reasons_more", count=len(reasons) - MAX_REASONS)):
                st.text("\n".join(reasons[MAX_REASONS:]))


def _cause(context: Context, cause: str) -> None:
    say = context.say
    text = f"{say('pair.cause')}: {in_markdown(cause)}"
    known = f"{say(f'pair.cause_{cause}')}  \n" if f"pair.cause_{cause}" in TEXTS else ""
    st.badge(text, color="gray", help=f"{known}{say('pair.cause_help')}")


def _listed(key: PairKey) -> list[PairKey] | None:
    """The pairs of the page of the list that was shown last; None if this one is not among them."""
    experiment, candidate, keys, _ = st.session_state.get("listed", NOT_LISTED)
    is_of_series = (experiment, candidate) == (key.experiment, key.candidate)
    return keys if is_of_series and key in keys else None


def _in_list(context: Context, key: PairKey) -> None:
    """Links to the list and to this pair's neighbours: in the page of it that was shown last, else, as for a
    pair that an alert or the overview led to, among the worst of the range.
    """
    say = context.say
    experiment, candidate, _, parameters = st.session_state.get("listed", NOT_LISTED)
    is_of_series = (experiment, candidate) == (key.experiment, key.candidate)
    own = {name: value for name, value in parameters.items() if name not in ("experiment", "candidate")}
    context.link("pairs", say("pair.to_list"), icon=":material/list:", **(own if is_of_series else {}))
    keys = _listed(key)
    source = "worst" if keys is None else "listed"
    if keys is None:
        keys = lists.worst_keys(context.reader, context.series, context.window.start, context.window.end)
    if key not in keys:
        st.caption(say("pair.place_none"), width="content")
        return
    place = keys.index(key)
    view: dict[str, Any] = {"view": context.address.text("view"), "number": context.address.text("number")}
    st.caption(say(f"pair.place_{source}", number=place + 1, count=len(keys)), width="content")
    for name, index, icon in (
        ("previous", place - 1, ":material/chevron_left:"),
        ("next", place + 1, ":material/chevron_right:"),
    ):
        if 0 <= index < len(keys):
            # No link: one from a page to itself leaves the browser's address as it was (Streamlit 1.67).
            st.button(
                say(f"pair.{name}"),
                icon=icon,
                type="tertiary",
                on_click=context.address.ask,
                args=("pair", context.parameters(**context.pair_parameters(keys[index]), **view)),
            )


def _prompt(context: Context, body: str) -> None:
    say = context.say
    turns = turns_of(body)
    st.caption(say("pair.prompt") if turns else say("pair.prompt_gone"))
    if not turns:
        return
    text = turns[-1][1]
    lines = text.count("\n") + len(text) // 110 + 1
    st.code(
        visible(text, PROMPT_CHARACTERS) or say("pair.empty_answer"),
        language=None,
        wrap_lines=True,
        height="content" if lines <= PROMPT_LINES else LINE_PX * PROMPT_LINES + 32,
    )
    if len(turns) > 1:
        st.caption(say("pair.prompt_earlier", count=len(turns) - 1))
