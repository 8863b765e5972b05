"""One golden run: its cases beside the baseline's, and one case with its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from dashboards.asked import records
from dashboards.charts.golden import status_words
from dashboards.pair_views.word_diff import word_diff
from dashboards.questions import golden as questions
from dashboards.screens.choose import choose_row
from dashboards.shell import states
from dashboards.shell.context import Context
from dashboards.shell.figures import known
from dashboards.shell.hidden_text import TextHidden
from dashboards.shell.hostile import in_markdown, visible, visible_line
from dashboards.shell.marks import show_marks

MOST_ROWS_SHOWN = 10
LONGEST = 50_000
HEIGHT = 300


def show_run(context: Context, run: pd.Series, runs: pd.DataFrame) -> None:
    """What became of each case since the baseline. `runs` are those of the set, the baseline among them."""
    say = context.say
    name, began = str(run["run_id"])[:8], context.clock.show(run["started_at"].to_pydatetime())
    st.subheader(say("golden.run", id=in_markdown(name), time=began), anchor="run")
    if len(run["reasons"]):
        st.markdown(f"**{say('golden.run_why')}**")
        st.text(visible("\n".join(map(str, run["reasons"])), 2_000))
    baselines = runs[runs["is_baseline"].astype(bool)]
    baseline = baselines.iloc[0] if not baselines.empty else None
    try:
        baseline_id = "" if baseline is None else str(baseline["run_id"])
        cases = questions.cases(context.reader, run, baseline_id)
    except TextHidden as error:
        # The view holds the answers: its numbers are those of the run above.
        states.explain(error, say, lambda: None)
        return
    if cases.empty:
        st.caption(say("golden.case_kept"))
        return
    if baseline is not None:
        _against(context, run, baseline, cases)
    changed = cases[cases["change"] != "same"]
    shown = cases
    if not changed.empty and context.address.toggle(st.container(), say("golden.only_changed"), "changed"):
        shown = changed.reset_index(drop=True)
    found = _choose(context, shown)
    if found:
        row = shown.iloc[[str(one) for one in shown["case_id"]].index(found)]
        _case(context, run, row, "" if baseline is None else str(baseline["run_id"]))


def _against(context: Context, run: pd.Series, baseline: pd.Series, cases: pd.DataFrame) -> None:
    say = context.say
    if run["run_id"] == baseline["run_id"]:
        st.caption(say("golden.is_the_baseline"))
        return
    counts = cases["change"].value_counts()
    found = [
        f"{say(f'golden.change_{name}')} {counts[name]}"
        for name in questions.CHANGES
        if name in counts and name != "same"
    ]
    st.markdown(
        say(
            "golden.against",
            id=in_markdown(str(baseline["run_id"])[:8]),
            time=context.clock.show(baseline["started_at"].to_pydatetime()),
            counts=" · ".join(found) or say("golden.against_same"),
        )
    )


def _choose(context: Context, cases: pd.DataFrame) -> str:
    say = context.say
    keys = [str(name) for name in cases["case_id"]]
    asked = context.address.one_of("case", keys)
    table = pd.DataFrame([_row(context, row) for row in records(cases)])
    number = st.column_config.NumberColumn
    columns = {
        say("golden.score"): number(format="%.3f"),
        say("golden.score_before"): number(format="%.3f"),
        say("golden.total_ms"): number(format="%.0f"),
    }
    chosen = choose_row(table, keys, asked, "golden-cases", rows=MOST_ROWS_SHOWN, columns=columns)
    if not chosen:
        st.caption(say("golden.choose_case"))
        return ""
    context.address.keep("case", chosen)
    return chosen


def _row(context: Context, case: Mapping[Any, Any]) -> dict[str, Any]:
    say = context.say
    fields = f"{case['fields_right']}/{case['fields_expected']}" if case["fields_expected"] else ""
    return {
        say("golden.case_id"): visible_line(str(case["case_id"]), 80),
        say("golden.change"): say(f"golden.change_{case['change']}"),
        say("golden.status"): status_words(say, str(case["status"])),
        say("golden.score"): known(case["score"]),
        say("golden.score_before"): known(case["score_before"]),
        say("golden.is_exact"): ""
        if known(case["is_exact"]) is None
        else _yes(context, bool(case["is_exact"])),
        say("golden.fields"): fields,
        say("golden.families"): ", ".join(map(str, case["fault_families"])),
        say("golden.failed_checks"): ", ".join(map(str, case["failed_checks"])),
        say("golden.total_ms"): known(case["total_ms"]),
    }


def _yes(context: Context, is_so: bool) -> str:
    return context.say("golden.yes" if is_so else "golden.no")


def _case(context: Context, run: pd.Series, row: pd.Series, baseline_id: str) -> None:
    say, set_name, case_id = context.say, str(run["set_name"]), str(row["case_id"])
    st.markdown(f"#### {say('golden.case', name=in_markdown(case_id, 80))}")
    case = questions.case(context.reader, set_name, case_id)
    answer = questions.answer(context.reader, set_name, str(run["run_id"]), case_id)
    before = None
    if baseline_id and baseline_id != run["run_id"]:
        before = questions.answer(context.reader, set_name, baseline_id, case_id)
    if row["change"] == "edited":
        st.caption(say("golden.edited_note"))
    if answer is not None and answer["reasons"]:
        st.markdown(f"**{say('golden.reasons')}**")
        st.text(visible("\n".join(map(str, answer["reasons"])), 2_000))
    expected = None if case is None else case["expected_text"]
    answered = "" if answer is None else str(answer["answer_text"])
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(f"**{say('golden.expected')}**")
        if case is None:
            st.caption(say("golden.case_gone"))
        elif expected is None:
            st.caption(say("golden.expected_none"))
        else:
            _marked(
                context, "expected", word_diff(str(expected), answered, say("pair.cut_words"))[0], case_id
            )
    with right:
        st.markdown(f"**{say('golden.answer')}**")
        if answer is not None and answer["failure_kind"]:
            st.text(visible(say("golden.answer_failed", kind=answer["failure_kind"]), 200))
        elif not answered:
            st.caption(say("golden.no_answer"))
        else:
            pieces = word_diff("" if expected is None else str(expected), answered, say("pair.cut_words"))[1]
            _marked(context, "answer", pieces, case_id)
    if expected is not None and answered:
        st.caption(say("golden.legend"))
    if before is not None:
        with st.expander(say("golden.answer_baseline")):
            st.code(
                visible(str(before["answer_text"]) or say("golden.no_answer"), LONGEST),
                language=None,
                wrap_lines=True,
            )
    if case is not None:
        _request(context, case, answer)


def _marked(context: Context, name: str, pieces: Any, case_id: str) -> None:
    show_marks(
        pieces,
        key=f"golden-{name}-{hash(case_id)}",
        label=context.say(f"golden.{name}"),
        cut=context.say("pair.cut_pieces"),
        height=HEIGHT,
    )


def _request(context: Context, case: dict[str, Any], answer: dict[str, Any] | None) -> None:
    say = context.say
    with st.expander(say("golden.request")):
        st.code(visible(str(case["body"]), LONGEST), language=None, wrap_lines=True)
        if case["checks"] not in ("", "[]"):
            st.markdown(f"**{say('golden.checks')}**")
            st.code(visible(str(case["checks"]), LONGEST), language=None, wrap_lines=True)
        for title, calls in (
            ("golden.expected", case["expected_tool_calls"]),
            ("golden.answer", "" if answer is None else answer["answer_tool_calls"]),
        ):
            if calls not in ("", "[]"):
                st.markdown(f"**{say(title)}: {say('golden.tool_calls')}**")
                st.code(visible(str(calls), LONGEST), language=None, wrap_lines=True)
    is_here = case["source"] == "stored" and case["source_experiment"] == context.series.experiment
    if is_here:
        context.link(
            "pair",
            say("golden.source"),
            icon=":material/arrow_forward:",
            topic_id=case["source_topic_id"],
            partition=case["source_partition"],
            offset=case["source_offset"],
        )
