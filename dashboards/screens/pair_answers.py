"""The two answers of a pair side by side, in one of four views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboards.pair_views.heat import NUMBERS, Both, alternatives, both_of, heat, note
from dashboards.pair_views.json_paths import json_side, schema_of, tool_calls_by_path
from dashboards.pair_views.parting import Parting, box, parting_of, taken_before
from dashboards.pair_views.plain import Span, plain
from dashboards.pair_views.word_diff import word_diff
from dashboards.questions.pair import Beside, Values
from dashboards.screens.pair_json import show_json, show_paths
from dashboards.shell.context import Context
from dashboards.shell.figures import known
from dashboards.shell.hostile import in_markdown, visible, visible_line
from dashboards.shell.marks import Piece, show_marks

VIEWS = ("plain", "words", "tokens", "json")
SIDES = ("reference", "candidate")
HEIGHT = 380


def show_answers(context: Context, row: pd.Series, beside: Beside, body: str) -> None:
    """Where they part, the choice of the view, and the view."""
    say = context.say
    position = known(row["divergence_position"])
    sides = {role: beside.answers.get(role) for role in SIDES}
    both = both_of(
        beside.tokens, beside.positions, beside.forced, None if position is None else int(position)
    )
    _say_parting(context, row, sides, both)
    parting = _parting(context, sides, both)
    choices = st.container(horizontal=True)
    view = context.address.choice(
        choices, say("pair.view"), "view", VIEWS, show=lambda name: say(f"pair.view_{name}")
    )
    number = "probability"
    if view == "tokens":
        number = context.address.choice(
            choices, say("pair.number"), "number", NUMBERS, show=lambda name: say(f"pair.number_{name}")
        )
    if view == "json":
        schema = schema_of(body)
        show_json(context, *(json_side(_text(sides[role]), schema) for role in SIDES), schema=schema)
        return
    pieces = _pieces(view, number, sides, both, parting, beside.findings, context)
    for column, role in zip(st.columns(2), SIDES, strict=True):
        with column:
            _answer(context, role, sides[role], pieces[role], f"{view}-{number}-{role}")
    if view == "tokens":
        _legend_tokens(context, number, both, sides)
    else:
        place = "" if not parting.spans else say(f"pair.legend_{'token' if parting.is_token else 'text'}")
        st.caption(f"{say(f'pair.legend_{view}')} {place}")
    _tool_calls(context, sides)


def _say_parting(context: Context, row: pd.Series, sides: dict[str, Any], both: Both) -> None:
    say = context.say
    if pd.isna(row["divergence_position"]):
        is_same = known(row["exact_match"]) == 1.0
        st.text(say("pair.never_parts" if is_same else "pair.parts_unknown"))
        return
    near = f"  {say('pair.near_tie')}" if row["is_near_tie"] else ""
    tokens = "   ".join(
        f"{say(f'pair.{role}')} “{visible_line(str(row[f'divergence_{role}_token']), 60)}”" for role in SIDES
    )
    st.text(f"{say('pair.parts', position=int(row['divergence_position']))}  {tokens}{near}")
    unlike = [_unlike(context, role, sides[role], _tokens(both, role)) for role in SIDES]
    if any(unlike):
        st.text(f"{say('pair.unlike')}  {'; '.join(filter(None, unlike))}")


def _unlike(context: Context, role: str, side: Any, tokens: list[str]) -> str:
    """How the tokens of a side differ from its text; nothing if they do not, up to where they are known."""
    if side is None or not tokens:
        return ""
    taken = taken_before(_text(side), tokens)
    if taken == 0:
        return ""
    if taken is None:
        return context.say("pair.unlike_other", side=context.say(f"pair.{role}"))
    lost = visible_line("".join(tokens)[:taken], 60)
    return context.say("pair.unlike_before", side=context.say(f"pair.{role}"), text=lost)


def _parting(context: Context, sides: dict[str, Any], both: Both) -> Parting:
    say, position = context.say, both.parting
    return parting_of(
        {role: _text(sides[role]) for role in SIDES},
        {role: _tokens(both, role) for role in SIDES},
        position,
        {role: "" if position is None else note(both, role, position, say) for role in SIDES},
        say("pair.note_text"),
    )


def _pieces(
    view: str,
    number: str,
    sides: dict[str, Any],
    both: Both,
    parting: Parting,
    findings: Sequence[Values],
    context: Context,
) -> dict[str, list[Piece]]:
    say = context.say
    if view == "tokens":
        return {
            role: heat(both, role, number, say, ended=_ended(sides[role])) if _tokens(both, role) else []
            for role in SIDES
        }
    if view == "words":
        left, right = word_diff(_text(sides["reference"]), _text(sides["candidate"]), say("pair.cut_words"))
        made = {"reference": left, "candidate": right}
        return {
            role: list(box(made[role], parting.spans[role])) if role in parting.spans else made[role]
            for role in SIDES
        }
    made = {}
    for role in SIDES:
        text = _text(sides[role])
        evidence = evidence_of(findings, role, _tokens(both, role), text)
        shown = plain(text, evidence, parting.spans.get(role), say("pair.gap"))
        if shown.left_out:
            shown.pieces.append(Piece(f"\n{say('pair.left_out', count=shown.left_out)}", "missing"))
        made[role] = shown.pieces
    return made


def evidence_of(findings: Sequence[Values], role: str, tokens: list[str], text: str) -> list[Span]:
    """The findings' spans in characters of the text. Spans of tokens are turned where the tokens spell it."""
    spans = []
    for one in (one for one in findings if one["side"] == role):
        start, end = int(one["span_start"]), int(one["span_end"])
        words = f"{one['family']}/{one['code']}: {one['message']}"
        if one["unit"] == "characters":
            spans.append(Span(start, end, words))
        elif one["unit"] == "tokens":
            is_whole = text.startswith("".join(tokens[:end]))
            taken = 0 if is_whole else taken_before(text, tokens)
            if taken is not None:
                left, right = (len("".join(tokens[:edge])) - taken for edge in (start, end))
                spans.append(Span(left, right, words))
    return spans


def _answer(context: Context, role: str, side: Any, pieces: list[Piece], key: str) -> None:
    say = context.say
    name = say(f"pair.{role}")
    if side is None:
        st.markdown(f"**{name}**")
        st.text(say("pair.not_kept"))
        return
    count, total = known(side["completion_tokens"]), known(side["total_ms"])
    facts = say(
        "pair.answer_facts",
        finish=in_markdown(str(side["finish_reason"] or "—")),
        tokens="?" if count is None else f"{count:.0f}",
        total="?" if total is None else f"{total:,.0f}",
    )
    reused = f" · {say('pair.reused')}" if side["is_reused"] else ""
    st.markdown(f"**{name}** {in_markdown(str(side['endpoint_name']), 40)} :small[{facts}{reused}]")
    if side["failure_kind"]:
        status = known(side["failure_status"])
        code = "" if status is None else f" {status:.0f}"
        st.text(
            f"{say('pair.failed')}: {visible_line(str(side['failure_kind']))}{code}:"
            f" {visible(str(side['failure_message'] or ''), 2_000)}"
        )
    if pieces:
        label = say("pair.answer_of", side=name)
        show_marks(pieces, key=key, label=label, cut=say("pair.cut_pieces"), height=HEIGHT)
    else:
        st.text(say("pair.no_tokens" if key.startswith("tokens") else "pair.empty_answer"))
    if side["reasoning"]:
        with st.expander(say("pair.reasoning")):
            st.code(visible(str(side["reasoning"])), language=None, wrap_lines=True)


def _legend_tokens(context: Context, number: str, both: Both, sides: dict[str, Any]) -> None:
    say = context.say
    has_forced = any(one is not None for one in both.reference.kls[(both.parting or 0) + 1 :])
    forced = say("pair.forced_here" if has_forced else "pair.forced_not")
    st.caption(f"{say(f'pair.legend_{number}', forced=forced)} {say('pair.legend_hover')}")
    for role in SIDES:
        count = None if sides[role] is None else known(sides[role]["completion_tokens"])
        texts = _tokens(both, role)
        if texts and count is not None and count > len(texts) + 1:
            words = say("pair.tokens_cut", count=len(texts), all=f"{count:.0f}")
            st.caption(f"{say(f'pair.{role}')}: {words}")
    table = alternatives(both)
    if table.empty:
        return
    st.markdown(f"**{say('pair.alternatives')}**")
    share = st.column_config.ProgressColumn
    st.dataframe(
        table,
        hide_index=True,
        placeholder="",
        width=560,
        column_config={
            "token": say("pair.token"),
            **{
                role: share(
                    say("pair.probability_of", side=say(f"pair.{role}")),
                    format="percent",
                    min_value=0,
                    max_value=1,
                )
                for role in SIDES
            },
        },
    )
    st.caption(say("pair.alternatives_note"))


def _tool_calls(context: Context, sides: dict[str, Any]) -> None:
    calls = {
        role: []
        if sides[role] is None
        else list(zip(sides[role]["tool_names"], sides[role]["tool_arguments"], strict=True))
        for role in SIDES
    }
    if not any(calls.values()):
        return
    st.markdown(f"**{context.say('pair.tools')}**")
    show_paths(context, tool_calls_by_path(calls["reference"], calls["candidate"]), "tools_all")


def _text(side: Any) -> str:
    return "" if side is None else str(side["text"])


def _tokens(both: Both, role: str) -> list[str]:
    return both.reference.texts if role == "reference" else both.candidate.texts


def _ended(side: Any) -> str:
    if side is None or not side["finish_reason"]:
        return ""
    return "<end>" if side["finish_reason"] in ("stop", "tool_calls") else f"[{side['finish_reason']}]"
