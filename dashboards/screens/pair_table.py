"""A table of pairs in which one can be chosen, with the mouse or by keyboard."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboards.questions.pair import PairKey
from dashboards.screens.choose import table_height
from dashboards.shell.context import Context
from dashboards.shell.hostile import visible_line

NUMBER = "row"
"""The column of the rows' numbers, the first one."""


def key_of(context: Context, row: pd.Series) -> PairKey:
    """The key of one row; of another experiment where the row names it."""
    return PairKey(
        str(row.get("experiment", context.series.experiment)),
        str(row.get("candidate", context.series.candidate)),
        str(row["topic_id"]),
        int(row["partition"]),
        int(row["offset"]),
    )


def show_pair_table(
    context: Context, rows: pd.DataFrame, name: str, *, most_rows: int = 15, first_row: int = 0
) -> PairKey | None:
    """Show the rows, of `questions.pairs.page` or of `questions.pair.same_request`.

    `first_row` counts the rows before them: numbers go on from page to page. Returns the pair that was
    chosen in this run, by a click on any cell of its row or by its box, else None.
    """
    say = context.say
    shown = pd.DataFrame({NUMBER: range(first_row + 1, first_row + len(rows) + 1)})
    shown["at"] = context.clock.wall(rows["mirrored_at"]).to_numpy()
    for column in ("experiment", "candidate"):
        if column in rows:
            shown[column] = [visible_line(str(value)) for value in rows[column]]
    shown["verdict"] = rows["verdict"].to_numpy()
    shown["severity"] = rows["severity"].astype(float).to_numpy()
    if "candidate_only" in rows:
        shown["request_id"] = [visible_line(str(value)) for value in rows["request_id"]]
        shown["route"] = [visible_line(str(value)) for value in rows["route"]]
        shown["candidate_only"] = [", ".join(names) for names in rows["candidate_only"]]
    for column in ("divergence_position", "kl_forced_mean_nats", "edit_similarity"):
        shown[column] = rows[column].astype(float).to_numpy()
    if "candidate_total_ms" in rows:
        shown["reference_only"] = [", ".join(names) for names in rows["reference_only"]]
        for column in ("reference_total_ms", "candidate_total_ms"):
            shown[column] = rows[column].astype(float).to_numpy()
    number = st.column_config.NumberColumn
    chosen = st.dataframe(
        shown,
        hide_index=True,
        placeholder="",
        key=name,
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
        height=table_height(len(shown), most_rows),
        column_config={
            NUMBER: number(say("pairs.row"), width=55, pinned=True),
            "at": st.column_config.DatetimeColumn(
                say("pairs.at", zone=context.clock.name), format="YYYY-MM-DD HH:mm:ss"
            ),
            "experiment": say("shell.experiment"),
            "candidate": say("pairs.candidate"),
            "verdict": say("pairs.verdict"),
            "severity": number(say("pairs.severity"), format="%.3f", help=say("pairs.severity_help")),
            "candidate_only": say("pairs.candidate_only"),
            "reference_only": say("pairs.reference_only"),
            "route": say("pairs.route"),
            "request_id": say("pairs.request"),
            "divergence_position": number(say("pairs.parts_at"), format="%d", help=say("pairs.parts_help")),
            "kl_forced_mean_nats": number(say("pairs.kl"), format="%.4f", help=say("pairs.kl_help")),
            "edit_similarity": number(
                say("pairs.similarity"), format="%.3f", help=say("pairs.similarity_help")
            ),
            "reference_total_ms": number(say("pairs.reference_ms"), format="%.0f"),
            "candidate_total_ms": number(say("pairs.candidate_ms"), format="%.0f"),
        },
    )
    rows_chosen, cells = list(chosen.selection.rows), list(chosen.selection.cells)
    before = st.session_state.get(f"{name} cell")
    st.session_state[f"{name} cell"] = cell = cells[0] if cells else None
    picked = rows_chosen[0] if rows_chosen else None if cell is None else int(cell[0])
    if picked is None or picked >= len(rows):
        return None
    if not rows_chosen and not is_click(before, cell):
        words = say("pairs.open_row", number=first_row + picked + 1)
        if not st.button(words, icon=":material/arrow_forward:", key=f"{name} open"):
            return None
    return key_of(context, rows.iloc[picked])


def is_click(before: tuple[int, str] | None, cell: tuple[int, str] | None) -> bool:
    """Whether a cell, (row, column), was surely chosen with the mouse.

    The keyboard's focus chooses the first cell, and its arrows and Tab go on from there along the row or the
    column: whoever passes by must not be taken to a pair.
    """
    if cell is None or cell == before:
        return False
    return cell != (0, NUMBER) if before is None else cell[0] != before[0] and cell[1] != before[1]


def open_pair(context: Context, key: PairKey) -> None:
    """Turn to the page of a pair, also of another experiment."""
    context.go("pair", experiment=key.experiment, candidate=key.candidate, **context.pair_parameters(key))
