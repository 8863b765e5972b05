"""Operations: the endpoints, what failed at them, their tokens and the orders of people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

import msgspec
import pandas as pd
import streamlit as st

from dashboards.charts import operations as charts
from dashboards.charts.drawn import draw
from dashboards.questions import endpoints as questions
from dashboards.screens.choose import MISSING
from dashboards.shell.context import Context, utc_now
from dashboards.shell.hostile import visible_line

ERRORS = {
    "candidate": ("candidate_error", "both_error"),
    "reference": ("reference_error", "both_error"),
}
"""Verdicts in which the side answered with an error."""


class Errors(msgspec.Struct, frozen=True):
    """Pairs of the range, and on how many of them each side answered with an error."""

    pairs: int
    candidate: int
    reference: int

    @classmethod
    def of(cls, records: pd.DataFrame) -> Self:
        """Counted from `questions.operations.throughput`."""
        if records.empty:
            return cls(0, 0, 0)
        compared = records[records["kind"] == "compared"].groupby("reason")["records"].sum()
        sides = {
            side: int(compared.reindex(list(verdicts)).fillna(0).sum()) for side, verdicts in ERRORS.items()
        }
        return cls(int(compared.sum()), **sides)


def recently() -> datetime:
    """Since when failures are counted: by the minute, so that the same question within it is asked once."""
    return utc_now().replace(second=0, microsecond=0) - questions.FAILED_WITHIN


def show_endpoints(context: Context, errors: Errors) -> None:
    """A row an endpoint, then what lies behind its figures."""
    say, reader, series = context.say, context.reader, context.series
    known = questions.endpoints(reader, series)
    failed = questions.failed(reader, series, recently())
    if known.empty:
        st.info(say("operations.endpoints_none"))
    else:
        now = utc_now()
        use = questions.token_use(reader, [str(name) for name in known["endpoint"]], now)
        today = use[use["day"].astype(str) == str(now.date())].set_index("endpoint").to_dict("index")
        held = questions.pauses(reader, series)
        rows = [_row(context, row, failed, today, held, errors) for _, row in known.iterrows()]
        st.dataframe(
            pd.DataFrame(rows), hide_index=True, column_config=_columns(context), placeholder=MISSING
        )
        st.caption(say("operations.endpoints_note", count=f"{errors.pairs:,}"))
        if errors.candidate or errors.reference:
            context.link(
                "pairs",
                say("operations.errors_link"),
                icon=":material/list:",
                verdict=sorted({verdict for side in ERRORS.values() for verdict in side}),
            )
    _failures(context, failed)
    if not known.empty:
        _tokens(context, use)
    _orders(context)


def _row(
    context: Context,
    row: pd.Series,
    failed: pd.DataFrame,
    today: Mapping[Any, Mapping[Any, Any]],
    held: pd.DataFrame,
    errors: Errors,
) -> dict[str, Any]:
    say, name = context.say, str(row["endpoint"])
    mine = failed[failed["endpoint"] == name]
    used = today.get(name, {})
    tokens = int(used.get("prompt_tokens", 0)) + int(used.get("completion_tokens", 0))
    budget = None if pd.isna(row["tokens_per_day"]) else int(row["tokens_per_day"])
    state = "fine"
    if not held.empty and held["endpoint"].isin(["", name]).any():
        state = "paused"
    elif budget is not None and tokens >= budget:
        state = "budget"
    elif not mine.empty:
        state = "failing"
    count = {"reference": errors.reference, "candidate": errors.candidate}.get(row["role"])
    if row["role"] == "candidate" and name != context.series.candidate:
        # Counted for the candidate that the side bar shows only.
        count = None
    last = mine["last_at"].max() if not mine.empty else None
    return {
        "endpoint": visible_line(name, 80),
        "role": say(f"operations.role_{row['role']}"),
        "state": say(f"operations.state_{state}"),
        "away": int(mine["records"].sum()),
        "last_failed": None if last is None else context.clock.wall_time(last),
        "errors": count,
        "calls_today": int(used.get("calls", 0)),
        "tokens_today": tokens,
        "budget": budget,
        "budget_used": None if budget is None else tokens / budget,
        "served": visible_line(
            ", ".join(str(row[what]) for what in ("model", "quantization", "engine") if row[what]), 120
        ),
    }


def _columns(context: Context) -> dict[str, Any]:
    say, number = context.say, st.column_config.NumberColumn
    return {
        **{name: say(f"operations.{name}") for name in ("endpoint", "role", "state", "served")},
        **{
            name: number(say(f"operations.{name}"), format="localized")
            for name in ("away", "errors", "calls_today", "tokens_today", "budget")
        },
        "last_failed": st.column_config.DatetimeColumn(
            say("operations.last_failed", zone=context.clock.name), format="YYYY-MM-DD HH:mm:ss"
        ),
        "budget_used": st.column_config.ProgressColumn(
            say("operations.budget_used"), min_value=0.0, max_value=1.0, format="percent"
        ),
    }


def _failures(context: Context, failed: pd.DataFrame) -> None:
    say = context.say
    if failed.empty:
        st.caption(say("operations.failures_none"))
        return
    with st.expander(say("operations.failures"), expanded=True):
        st.dataframe(
            pd.DataFrame(
                {
                    say("operations.endpoint"): [
                        visible_line(str(one), 80) or say("operations.unnamed") for one in failed["endpoint"]
                    ],
                    say("operations.reason"): failed["reason"],
                    say("operations.count"): failed["records"],
                    say("operations.last_failed", zone=context.clock.name): context.clock.wall(
                        failed["last_at"]
                    ),
                    say("operations.by_pause"): [
                        say("operations.yes") if one else "" for one in failed["is_paused"]
                    ],
                }
            ),
            hide_index=True,
        )


def _tokens(context: Context, use: pd.DataFrame) -> None:
    say = context.say
    st.markdown(f"**{say('operations.token_chart')}**")
    if use.empty:
        st.caption(say("operations.token_none", days=questions.USE_DAYS))
        return
    shown = use.assign(endpoint=[visible_line(str(name), 80) for name in use["endpoint"]])
    draw(charts.tokens(shown, say))
    total = int((use["prompt_tokens"] + use["completion_tokens"]).sum())
    share = int(use["estimated_tokens"].sum()) / total if total else 0.0
    st.caption(say("operations.token_note", share=f"{share:.1%}"))


def _orders(context: Context) -> None:
    say = context.say
    orders = questions.orders(context.reader, context.series)
    if orders.empty:
        return
    with st.expander(say("operations.orders", count=len(orders))):
        st.dataframe(
            pd.DataFrame(
                {
                    say("operations.ordered_at", zone=context.clock.name): context.clock.wall(
                        orders["ordered_at"]
                    ),
                    say("operations.action"): orders["action"],
                    say("operations.endpoint"): [
                        visible_line(str(one), 80) or say("operations.all_endpoints")
                        for one in orders["endpoint"]
                    ],
                    say("operations.partition"): orders["partition"].astype("Int64"),
                    say("operations.ordered_by"): [
                        visible_line(str(one), 80) for one in orders["ordered_by"]
                    ],
                    say("operations.why"): [visible_line(str(one), 200) for one in orders["why"]],
                }
            ),
            hide_index=True,
        )
