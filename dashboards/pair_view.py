"""One pair side by side. Every text of a model goes through `st.code` or `st.text`: never as Markup."""

from __future__ import annotations

import json
from typing import Literal

import pandas as pd
import streamlit as st

from compare.store.client import Store
from compare.visible import visible_block as visible
from dashboards import queries
from dashboards.charts import overview as charts

ANSWER_LINES = 18
ANSWER_HEIGHT = 440

SCORES = (
    "kl_forced_mean_nats",
    "kl_prefix_mean_nats",
    "entropy_reference_lower_nats",
    "entropy_candidate_lower_nats",
    "edit_similarity",
    "cosine_similarity",
    "cosine_min_similarity",
    "field_agreement",
    "length_ratio",
    "latency_ratio",
)


def show(store: Store, key: queries.PairKey) -> None:
    """Verdict, divergence, both answers, findings, scores and the request of one pair."""
    found = queries.pair(store, key)
    st.subheader("Pair")
    if found.empty:
        st.warning("This pair is not in the store (any more).")
        return
    row = found.iloc[0]
    st.text(f"{visible(row['request_id'])}   verdict: {row['verdict']}   cause: {row['probable_cause']}")
    for reason in row["reasons"]:
        st.text(f"- {visible(reason)}")
    _show_divergence(row)
    _show_answers(queries.answers(store, key))
    _show_findings(queries.findings(store, key))
    steps = queries.positions(store, key)
    if not steps.empty:
        st.altair_chart(charts.by_position(steps))
    _show_scores(row)
    with st.expander("Mirrored request"):
        body = queries.request_body(store, key)
        st.code(visible(_pretty(body) or "(no longer kept)"), language=None, wrap_lines=True)


def _show_divergence(row: pd.Series) -> None:
    if pd.isna(row["divergence_position"]):
        st.text("The answers never part, token for token, or they cannot be compared token for token.")
        return
    near = " (a near tie)" if row["is_near_tie"] else ""
    st.text(
        f"The answers part at token {int(row['divergence_position'])}{near}: reference "
        f"{visible(repr(row['divergence_reference_token']))}, "
        f"candidate {visible(repr(row['divergence_candidate_token']))}"
    )


def _show_answers(found: pd.DataFrame) -> None:
    for column, role in zip(st.columns(2), ("reference", "candidate"), strict=True):
        with column:
            sides = found[found["role"] == role]
            st.markdown(f"**{role.capitalize()}**")
            if sides.empty:
                st.text("(no longer kept)")
                continue
            side = sides.iloc[0]
            tokens = side["completion_tokens"]
            st.caption(
                f"finish: {side['finish_reason'] or 'none'}, "
                f"{'?' if pd.isna(tokens) else int(tokens)} tokens, {side['total_ms']:.0f} ms"
            )
            if side["failure_kind"]:
                st.text(f"failed: {side['failure_kind']}: {visible(str(side['failure_message']))}")
            if side["reasoning"]:
                with st.expander("Reasoning"):
                    st.code(visible(side["reasoning"]), language=None, wrap_lines=True)
            # A loop runs over many screens: it scrolls in a box of its own.
            box: int | Literal["content"] = (
                ANSWER_HEIGHT if side["text"].count("\n") > ANSWER_LINES else "content"
            )
            st.code(visible(side["text"]) or "(empty)", language=None, wrap_lines=True, height=box)
            for name, arguments in zip(side["tool_names"], side["tool_arguments"], strict=True):
                st.text(f"tool call {visible(name)}")
                st.code(visible(arguments), language=None, wrap_lines=True)


def _show_findings(found: pd.DataFrame) -> None:
    st.markdown("**Findings**")
    if found.empty:
        st.text("None.")
        return
    shown = found.assign(message=[visible(message) for message in found["message"]])
    st.dataframe(shown, hide_index=True)


def _show_scores(row: pd.Series) -> None:
    reasons = dict(row["unscored"])
    lines = [
        {
            "score": name,
            "value": None if pd.isna(row[name]) else float(row[name]),
            "unscored": reasons.get(name, ""),
        }
        for name in SCORES
    ]
    with st.expander("Scores"):
        st.dataframe(pd.DataFrame(lines), hide_index=True)


def _pretty(body: str) -> str:
    try:
        return json.dumps(json.loads(body), ensure_ascii=False, indent=2)
    except ValueError:
        return body
