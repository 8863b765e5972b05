"""What stands below a pair's answers: findings, forced positions, timings, scores, the raw texts, the command
that runs it again, and pairs like it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboards.charts.drawn import draw
from dashboards.charts.pair import forced_positions
from dashboards.pair_views.replay_command import replay_command
from dashboards.questions import pair as questions
from dashboards.questions import pairs as lists
from dashboards.questions.pair import Beside, PairKey, Values
from dashboards.screens.pair_table import key_of, open_pair, show_pair_table
from dashboards.shell.context import Context
from dashboards.shell.figures import known
from dashboards.shell.hostile import in_markdown, visible, visible_line

SIDES = ("reference", "candidate")
LONGEST_RAW = 64 * 1024
RAW_HEIGHT = 400
MAX_ALIKE = 6


def show_all(context: Context, key: PairKey, row: pd.Series, beside: Beside) -> None:
    """Every section, texts included."""
    _findings(context, beside.findings)
    _forced(context, beside.forced)
    left, right = st.columns(2)
    with left:
        _timings(context, row, beside.answers)
    with right:
        _scores(context, row)
    _raw(context, row, beside)
    _replay(context, key, row)
    _similar(context, key, row)


def ahead(context: Context, key: PairKey, row: pd.Series) -> None:
    """Begin what is shown last."""
    day = row["ingested_at"].date()
    context.reader.ahead(questions.same_request, key, str(row["request_hash"]), day)
    context.reader.ahead(lists.page, context.series, _like(row), limit=MAX_ALIKE + 1)


def show_without_texts(context: Context, key: PairKey, row: pd.Series) -> None:
    """What a role that hides texts may see."""
    _findings(context, questions.findings(context.reader, key, row["ingested_at"].date()))
    _scores(context, row)
    _replay(context, key, row)
    _similar(context, key, row)


def _findings(context: Context, findings: Sequence[Values]) -> None:
    say = context.say
    st.markdown(f"**{say('pair.findings')}** ({len(findings)})")
    if not findings:
        st.caption(say("pair.no_findings"))
        return
    shown = pd.DataFrame(
        {
            "side": [say(f"pair.{one['side']}") for one in findings],
            "family": [one["family"] for one in findings],
            "code": [visible_line(one["code"]) for one in findings],
            "is_fault": [bool(one["is_fault"]) for one in findings],
            "message": [visible_line(one["message"]) for one in findings],
            "span": [_span(context, one) for one in findings],
            "measured": [known(one["measured"]) for one in findings],
            "threshold": [known(one["threshold"]) for one in findings],
        }
    )
    st.dataframe(
        shown,
        hide_index=True,
        placeholder="",
        column_config={
            name: st.column_config.TextColumn(say(f"pair.{name}"), width="large")
            if name == "message"
            else say(f"pair.{name}")
            for name in shown.columns
        },
    )


def _span(context: Context, one: Values) -> str:
    if one["unit"] not in ("characters", "tokens"):
        return ""
    return context.say(f"pair.{one['unit']}", start=int(one["span_start"]), end=int(one["span_end"]))


def _forced(context: Context, one: Values | None) -> None:
    say = context.say
    st.markdown(f"**{say('pair.forced')}**")
    if one is None:
        st.caption(say("pair.forced_not_chosen"))
        return
    if one["unscored_reason"]:
        st.caption(say("pair.forced_none", reason=in_markdown(str(one["unscored_reason"]))))
        return
    tokens = list(one["token"])
    columns = {
        "token": [visible_line(token, 60) for token in tokens],
        "reference_top1": [visible_line(token or "", 60) for token in one["reference_top1_token"]],
        "candidate_top1": [visible_line(token or "", 60) for token in one["candidate_top1_token"]],
        **{
            # Rows older than a column have none of its numbers.
            name: [known(value) for value in one[name]] or [None] * len(tokens)
            for name in ("kl_lower_nats", "reference_logprob", "candidate_logprob")
        },
    }
    steps = [
        dict(zip(("position", *columns), row, strict=True))
        for row in zip(range(len(tokens)), *columns.values(), strict=True)
    ]
    draw(forced_positions(steps, say))


def _timings(context: Context, row: pd.Series, answers: Mapping[str, Values]) -> None:
    say = context.say
    st.markdown(f"**{say('pair.timings')}**")
    table: dict[str, list[Any]] = {"what": [], "reference": [], "candidate": []}
    for name, column in (
        ("first_token", "first_token_ms"),
        ("total", "total_ms"),
        ("tokens_per_s", None),
        ("prompt_tokens", "prompt_tokens"),
        ("answer_tokens", "completion_tokens"),
    ):
        table["what"].append(say(f"pair.{name}"))
        for role in SIDES:
            number = row[f"{role}_tokens_per_s"] if column is None else answers.get(role, {}).get(column)
            table[role].append(known(number))
    number = st.column_config.NumberColumn
    st.dataframe(
        pd.DataFrame(table),
        hide_index=True,
        placeholder="",
        column_config={
            "what": "",
            **{role: number(say(f"pair.{role}"), format="%.1f") for role in SIDES},
        },
    )
    for role in SIDES:
        if role in answers and answers[role]["notes"]:
            notes = ", ".join(in_markdown(note) for note in answers[role]["notes"])
            st.caption(f"{say(f'pair.{role}')}, {say('pair.notes')}: {notes}")


def _scores(context: Context, row: pd.Series) -> None:
    say = context.say
    st.markdown(f"**{say('pair.scores')}**")
    reasons = dict(row["unscored"])
    lines = [
        {
            "score": name,
            "value": known(row[name]),
            "why_not": "" if known(row[name]) is not None else reasons.get(name, say("shell.unscored")),
        }
        for name in questions.SCORES
    ]
    st.dataframe(
        pd.DataFrame(lines),
        hide_index=True,
        placeholder="",
        height=212,
        column_config={
            "score": say("pair.score"),
            "value": st.column_config.NumberColumn(say("pair.value"), format="%.4f"),
            "why_not": say("pair.why_not"),
        },
    )


def _raw(context: Context, row: pd.Series, beside: Beside) -> None:
    say, request = context.say, beside.request
    with st.expander(say("pair.raw")):
        if row["is_redacted"]:
            st.caption(say("pair.redacted"))
        texts: list[tuple[str, str | None]] = [
            (say("pair.raw_request"), None if request is None else _pretty(request["body"]))
        ]
        if request is not None and request["production_body"]:
            texts.append((say("pair.raw_production"), _pretty(request["production_body"])))
        for role in SIDES:
            side = beside.answers.get(role)
            name = say(f"pair.{role}")
            sent, answer = (None, None) if side is None else (_pretty(side["sent_body"]), str(side["text"]))
            texts.append((say("pair.raw_sent", side=name), sent))
            texts.append((say("pair.raw_answer", side=name), answer))
        for label, text in texts:
            st.caption(label)
            if text is None:
                st.text(say("pair.not_kept"))
                continue
            is_long = text.count("\n") > 14 or len(text) > 2_000
            st.code(
                visible(text, LONGEST_RAW) or say("pair.empty_answer"),
                language=None,
                wrap_lines=True,
                height=RAW_HEIGHT if is_long else "content",
            )


def _replay(context: Context, key: PairKey, row: pd.Series) -> None:
    say = context.say
    st.markdown(f"**{say('pair.replay')}**")
    st.code(visible(replay_command(key, row["mirrored_at"])), language=None, wrap_lines=True)
    st.caption(say("pair.replay_note", experiment=in_markdown(key.experiment)))


def _similar(context: Context, key: PairKey, row: pd.Series) -> None:
    say = context.say
    st.markdown(f"**{say('pair.same')}**")
    same = questions.same_request(context.reader, key, str(row["request_hash"]), row["ingested_at"].date())
    chosen = None
    if same.empty:
        st.caption(say("pair.same_none"))
    else:
        chosen = show_pair_table(
            context, same, f"same-{key.topic_id}-{key.partition}-{key.offset}", most_rows=6
        )
    wanted = _like(row)
    what = (
        say("pair.alike_family", families=", ".join(map(in_markdown, wanted.families)))
        if wanted.families
        else say("pair.alike_verdict", verdict=in_markdown(row["verdict"]))
    )
    st.markdown(f"**{say('pair.alike', route=in_markdown(str(row['route'])) or '—', what=what)}**")
    alike = lists.page(context.reader, context.series, wanted, limit=MAX_ALIKE + 1).rows
    others = [key_of(context, one) != key for _, one in alike.iterrows()]
    alike = alike[others].head(MAX_ALIKE)
    if alike.empty:
        st.caption(say("pair.alike_none"))
    else:
        name = f"alike-{key.topic_id}-{key.partition}-{key.offset}"
        chosen = show_pair_table(context, alike, name, most_rows=MAX_ALIKE) or chosen
    if chosen is not None:
        open_pair(context, chosen)


def _like(row: pd.Series) -> lists.PairFilter:
    """Pairs of its route with its candidate's faults; without any, of its verdict."""
    families = tuple(sorted({*row["candidate_fault_families"]}))
    return lists.PairFilter(
        routes=(str(row["route"]),), families=families, verdicts=() if families else (str(row["verdict"]),)
    )


def _pretty(body: Any) -> str:
    try:
        return json.dumps(json.loads(body), ensure_ascii=False, indent=2)
    except ValueError:
        return str(body)
