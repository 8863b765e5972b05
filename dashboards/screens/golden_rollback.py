"""How a rollback stands: the answer, conditions A, B and C, who was told, approvals, snapshots, commands."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec
import pandas as pd
import streamlit as st

from compare.rollback.condition import Condition
from compare.rollback.decisions import Decision
from compare.rollback.show import Status, status_of
from compare.rollback.snapshots import Snapshot, read_snapshots
from dashboards.questions import golden as questions
from dashboards.questions.pairs import REGRESSIONS
from dashboards.screens.overview_words import stretch
from dashboards.shell.context import Context, utc_now
from dashboards.shell.hostile import in_markdown, visible, visible_line
from dashboards.words import Words

MARKS = {"called": "▲", "not_called": "✓", "unknown": "?"}
COLOURS: dict[str, Any] = {"called": "orange", "not_called": "green", "unknown": "gray"}
LONGEST = 400


def show_rollback(context: Context) -> None:
    """The whole section; what nobody has looked at yet says how it comes about."""
    say = context.say
    last = questions.evaluation(context.reader, context.series)
    if last is None:
        st.header(f"? {say('golden.answer_unknown')}", divider="gray", anchor="rollback")
        st.info(say("golden.never"))
        status = None
    else:
        known = questions.decisions(context.reader, context.series)
        status = status_of(context.reader, last, utc_now())
        _answer(context, status)
        for place, (letter, condition) in zip(st.columns(3), last.conditions.items(), strict=True):
            with place, st.container(border=True, height="stretch"):
                _condition(context, letter, condition, known)
        if status.call is not None:
            _call(context, status)
        with st.expander(say("golden.history")):
            _history(context, known)
    snapshots = read_snapshots(context.reader, context.series.experiment)
    with st.expander(say("golden.snapshots"), expanded=bool(status and status.answer == "called")):
        _snapshots(context, snapshots)
    with st.expander(say("golden.commands"), expanded=bool(status and status.answer == "called")):
        st.caption(say("golden.commands_note"))
        st.code(commands(context, status), language=None, wrap_lines=True)


def commands(context: Context, status: Status | None) -> str:
    """What a person types: to look, to understand, to approve."""
    lines = ["gnomon rollback status", "gnomon rollback history"]
    call = status.call if status else None
    if status is not None and call is not None:
        target = shlex.quote(status.targets[0].name) if status.targets else "NAME"
        lines += [
            f"gnomon rollback explain {call.decision_id}",
            f"gnomon rollback approve {call.decision_id} --snapshot {target}",
        ]
    return "\n".join(visible_line(line, LONGEST) for line in lines)


def _answer(context: Context, status: Status) -> None:
    say, clock, last = context.say, context.clock, status.evaluation
    age = stretch(say, utc_now() - last.evaluated_at)
    # What the last look said is no answer once looks are overdue: the headline and the line below say so.
    is_late = status.answer == "unknown" and not status.is_watched
    answer = say("golden.answer_not_now", age=age) if is_late else say(f"golden.answer_{status.answer}")
    st.header(
        f"{MARKS[status.answer]} {answer}",
        divider=COLOURS[status.answer],
        anchor="rollback",
    )
    if status.call is not None and status.call.called_at is not None:
        since = clock.show(status.call.called_at)
        st.markdown(say("golden.called_since", id=f"**{in_markdown(last.decision_id)}**", time=since))
    count = {"yes": last.held, "no": last.clear}.get(last.says)
    st.caption(
        say(
            "golden.formula" if status.is_watched else "golden.formula_past",
            says=say(f"golden.says_{last.says}"),
            row="" if count is None else say("golden.row", count=count),
            time=clock.show(last.evaluated_at),
            who=in_markdown(last.evaluated_by, 60),
            interval=f"{last.interval_s:g}",
            age=age,
        )
    )
    if status.is_watched and last.is_called != (last.says == "yes") and last.says != "unknown":
        st.caption(say("golden.still_called" if last.is_called else "golden.not_yet_called"))
    if not status.is_watched:
        st.warning(say("golden.not_watched"))


def _condition(context: Context, letter: str, condition: Condition, known: list[Decision]) -> None:
    say = context.say
    st.metric(
        say(f"golden.condition_{letter}"),
        say(f"golden.state_{condition.state}"),
        help=say(f"golden.condition_{letter}_help"),
    )
    began = questions.since(known, letter, condition.state)
    st.caption(
        say("golden.since_unknown") if began is None else say("golden.since", time=context.clock.show(began))
    )
    st.text(visible(condition.summary, 1_000))
    if letter == "B" and condition.state in ("firing", "quiet"):
        context.link("pairs", say("golden.faulty_pairs"), icon=":material/list:", verdict=REGRESSIONS)
    with st.popover(say("golden.evidence"), width="stretch"):
        rows = evidence_rows(condition.evidence)
        if not rows:
            st.caption(say("golden.evidence_none"))
            return
        st.dataframe(
            pd.DataFrame(rows, columns=[say("golden.evidence_key"), say("golden.evidence_value")]),
            hide_index=True,
        )


def evidence_rows(evidence: dict[str, Any], before: str = "") -> list[tuple[str, str]]:
    """The evidence as (key, value), what is nested under `outer.inner` or `outer[0].inner`."""
    rows: list[tuple[str, str]] = []
    for key, value in evidence.items():
        name = f"{before}{key}"
        if isinstance(value, dict):
            rows += evidence_rows(value, f"{name}.")
        elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            for number, one in enumerate(value):
                rows += evidence_rows(one, f"{name}[{number}].")
        else:
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            rows.append((visible_line(name, 80), visible_line(text, LONGEST)))
    return rows


def _call(context: Context, status: Status) -> None:
    say, clock = context.say, context.clock
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown(f"#### {say('golden.told')}")
        if not status.told:
            st.caption(say("golden.told_none"))
        else:
            st.dataframe(
                pd.DataFrame(
                    {
                        say("golden.told_sink"): [visible_line(one.sink) for one in status.told],
                        say("golden.told_event"): [say(f"golden.event_{one.event}") for one in status.told],
                        say("golden.told_at", zone=clock.name): clock.wall(
                            pd.Series([one.attempted_at for one in status.told])
                        ),
                        say("golden.told_received"): [_yes(say, one.is_delivered) for one in status.told],
                        say("golden.told_attempts"): [one.attempts for one in status.told],
                        say("golden.told_error"): [visible_line(one.error, LONGEST) for one in status.told],
                    }
                ),
                hide_index=True,
            )
    with right:
        st.markdown(f"#### {say('golden.approvals')}")
        if not status.approvals:
            st.caption(say("golden.approvals_none"))
            return
        st.dataframe(
            pd.DataFrame(
                {
                    say("golden.approved_by"): [visible_line(one.approved_by) for one in status.approvals],
                    say("golden.approved_at", zone=clock.name): clock.wall(
                        pd.Series([one.approved_at for one in status.approvals])
                    ),
                    say("golden.approved_snapshot"): [visible_line(one.snapshot) for one in status.approvals],
                    say("golden.approved_status"): [
                        say(f"golden.status_{one.status}") for one in status.approvals
                    ],
                    say("golden.approved_note"): [visible_line(one.note) for one in status.approvals],
                    say("golden.approved_output"): [
                        visible_line(one.output, LONGEST) for one in status.approvals
                    ],
                }
            ),
            hide_index=True,
        )


def _history(context: Context, known: list[Decision]) -> None:
    say, clock = context.say, context.clock
    if not known:
        st.caption(say("golden.history_none"))
        return
    states = {
        letter: [say(f"golden.state_{getattr(one, f'condition_{letter.lower()}')}") for one in known]
        for letter in "ABC"
    }
    st.dataframe(
        pd.DataFrame(
            {
                say("golden.decided_at", zone=clock.name): clock.wall(
                    pd.Series([one.decided_at for one in known])
                ),
                say("golden.event"): [say(f"golden.event_{one.event}") for one in known],
                **states,
                say("golden.call"): [visible_line(one.decision_id) for one in known],
                say("golden.why"): [visible_line(one.summary, LONGEST) for one in known],
            }
        ),
        hide_index=True,
    )


def _snapshots(context: Context, snapshots: list[Snapshot]) -> None:
    say, clock = context.say, context.clock
    if not snapshots:
        st.caption(say("golden.snapshots_none"))
        parts = ["gnomon", "rollback", "snapshot", "add", "NAME", "--experiment", context.series.experiment]
        st.code(visible_line(shlex.join(parts), LONGEST), language=None)
        return
    st.dataframe(
        pd.DataFrame(
            {
                say("golden.snapshot_name"): [visible_line(one.name) for one in snapshots],
                say("golden.snapshot_target"): [_yes(say, one.why_no_target() is None) for one in snapshots],
                say("golden.snapshot_why_no"): [_why_no(say, one) for one in snapshots],
                say("golden.snapshot_score"): [one.golden_mean_score for one in snapshots],
                say("golden.snapshot_golden"): [visible_line(one.golden_run_id or "") for one in snapshots],
                say("golden.snapshot_model"): [visible_line(one.model or "") for one in snapshots],
                say("golden.snapshot_quantization"): [
                    visible_line(one.quantization or "") for one in snapshots
                ],
                say("golden.snapshot_image"): [visible_line(one.image or "", LONGEST) for one in snapshots],
                say("golden.snapshot_added", zone=clock.name): clock.wall(
                    pd.Series([one.added_at for one in snapshots])
                ),
            }
        ),
        hide_index=True,
        column_config={
            say("golden.snapshot_score"): st.column_config.NumberColumn(format="%.3f"),
        },
    )


def _why_no(say: Words, snapshot: Snapshot) -> str:
    if snapshot.why_no_target() is None:
        return ""
    if snapshot.golden_run_id is None:
        return say("golden.why_no_run")
    return say("golden.why_run_lost" if snapshot.golden_status is None else "golden.why_not_passed")


def _yes(say: Words, is_so: bool) -> str:
    return say("golden.yes" if is_so else "golden.no")
