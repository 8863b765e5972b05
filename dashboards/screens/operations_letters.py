"""Operations: the dead letters. What one holds is read only when somebody asks for it."""

from __future__ import annotations

import shlex

import pandas as pd
import streamlit as st

from dashboards.questions import dead_letters as questions
from dashboards.questions.dead_letters import LetterKey
from dashboards.screens.choose import choose_row
from dashboards.shell.context import Context
from dashboards.shell.hostile import in_markdown, visible, visible_line

MOST_ROWS_SHOWN = 8
HEX_A_LINE = 32


def show_letters(context: Context) -> None:
    """How many and why, the newest, and the chosen one."""
    say, reader, window = context.say, context.reader, context.window
    experiment, with_text = context.series.experiment, context.visitor.shows_text
    counts = questions.counts(reader, experiment, window.start, window.end)
    if not counts.empty:
        st.dataframe(
            pd.DataFrame(
                {
                    say("operations.reason"): [visible_line(str(one), 80) for one in counts["reason"]],
                    say("operations.count"): counts["records"],
                    say("operations.newest_at", zone=context.clock.name): context.clock.wall(
                        counts["newest_at"]
                    ),
                }
            ),
            hide_index=True,
            width="content",
        )
    reasons = ["", *(str(one) for one in counts["reason"])]
    reason = ""
    if len(reasons) > 2:
        reason = context.address.selectbox(
            st.columns([1, 2])[0],
            say("operations.letter_reason"),
            "reason",
            reasons,
            show=lambda one: visible_line(one, 80) or say("operations.any_reason"),
        )
    else:
        context.address.one_of("reason", reasons)
    letters = questions.newest(reader, experiment, window.start, window.end, reason, with_text=with_text)
    if letters.empty:
        context.address.one_of("letter", ())
        st.info(say("operations.letters_none"))
        return
    st.caption(say("operations.letters_newest", most=questions.MOST_LETTERS))
    if not with_text:
        st.caption(say("operations.letters_hidden"))
    sources = letters["source"] if with_text else pd.Series("record", index=letters.index)
    keys = [
        "/".join(map(str, key))
        for key in zip(letters["topic_id"], letters["partition"], letters["offset"], sources, strict=True)
    ]
    asked = context.address.one_of("letter", keys)
    found = choose_row(_table(context, letters), keys, asked, "letters", rows=MOST_ROWS_SHOWN)
    if found:
        context.address.keep("letter", found)
        _letter(context, letters.iloc[keys.index(found)])


def _table(context: Context, letters: pd.DataFrame) -> pd.DataFrame:
    say, zone = context.say, context.clock
    made = {
        say("operations.taken_at", zone=zone.name): zone.wall(letters["ingested_at"]),
        say("operations.position"): [
            f"{partition}/{offset}"
            for partition, offset in zip(letters["partition"], letters["offset"], strict=True)
        ],
        say("operations.reason"): [visible_line(str(one), 80) for one in letters["why"]],
    }
    if "detail" in letters:
        made |= {
            say("operations.guess"): [visible_line(str(one), 40) for one in letters["schema_guess"]],
            say("operations.detail"): [visible_line(str(one), 200) for one in letters["detail"]],
            say("operations.source"): [visible_line(str(one), 80) for one in letters["source"]],
            say("operations.replayed", zone=zone.name): zone.wall(letters["replayed_at"]),
        }
    made[say("operations.topic")] = [visible_line(str(one), 80) for one in letters["topic"]]
    return pd.DataFrame(made)


def _letter(context: Context, row: pd.Series) -> None:
    say = context.say
    if "detail" in row and row["detail"]:
        st.caption(say("operations.detail"))
        st.code(visible(str(row["detail"]), 2_000), language=None, wrap_lines=True)
    if row.get("is_redacted"):
        st.caption(say("operations.redacted"))
    st.caption(say("operations.letter_show"))
    position = visible_line(shlex.quote(f"{row['topic_id']}/{row['partition']}/{row['offset']}"))
    st.code(f"gnomon dlq show {position}\ngnomon dlq replay {position}", language=None)
    if not context.visitor.shows_text:
        return
    key = LetterKey(str(row["topic_id"]), int(row["partition"]), int(row["offset"]), str(row["source"]))
    if st.toggle(
        say("operations.letter_bytes"), key=f"bytes-{key}", help=say("operations.letter_bytes_help")
    ):
        _bytes(context, key)


def _bytes(context: Context, key: LetterKey) -> None:
    say = context.say
    found = questions.bytes_of(context.reader, context.series.experiment, key)
    if found is None or found["total_bytes"] is None:
        st.info(say("operations.letter_gone" if found is None else "operations.letter_no_value"))
        return
    value: bytes = found["value"]
    headers = ", ".join(in_markdown(str(name), 60) for name in found["header_names"])
    st.caption(
        say(
            "operations.letter_size",
            shown=f"{len(value):,}",
            count=f"{int(found['total_bytes']):,}",
            headers=headers or say("operations.no_headers"),
        )
    )
    st.code(visible(value.decode("utf-8", "backslashreplace")), language=None, wrap_lines=True)
    with st.expander("hex"):
        lines = [value[at : at + HEX_A_LINE].hex(" ", 4) for at in range(0, len(value), HEX_A_LINE)]
        st.code("\n".join(lines), language=None)
