"""The explorer's first page: layout only. Started by `gnomon dashboard`."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from compare.store.client import Store
from compare.visible import visible_block as visible
from dashboards import charts, pair_list, pair_view, queries, summary
from dashboards.accounts import Accounts
from dashboards.connection import connect
from ingest.errors import GnomonError, RetryError


@st.cache_resource(show_spinner="Connecting to the store", on_release=Store.close)
def first_store() -> Store:
    """The handle that the sessions' own are made from."""
    return connect()


@st.cache_resource(show_spinner=False, on_release=Store.close, scope="session")
def store() -> Store:
    """A handle of this session: calls on one wait for each other."""
    return first_store().another()


@st.cache_resource(show_spinner=False)
def kept_accounts() -> Accounts:
    """One for all sessions."""
    return Accounts()


def forget_the_store() -> None:
    """Connect anew when next asked."""
    store.clear()
    first_store.clear()


def percent(part: int, whole: int) -> str:
    """`part` of `whole` in percent, or a dash where there is nothing to divide by."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def number(value: float | None, digits: int = 3) -> str:
    """A score, or the word for a missing one."""
    return "unscored" if value is None or pd.isna(value) else f"{value:.{digits}f}"


def show_totals(series: summary.Series, totals: dict[str, Any]) -> None:
    """The two rows of figures at the top."""
    counted = kept_accounts().of(store(), series).iloc[0]
    cells = st.columns(5)
    for cell, name in zip(cells, ("consumed", "compared", "skipped", "failed", "dead_lettered"), strict=True):
        cell.metric(name.replace("_", "-"), int(counted[name]))
    if int(counted["unaccounted"]):
        st.warning(f"{int(counted['unaccounted'])} consumed records have no outcome yet (or were lost).")
    if series.until is not None:
        st.caption(
            f"Figures below count pairs up to {series.until:%Y-%m-%d %H:%M}; newer ones follow in minutes."
        )
    pairs = int(totals["pairs"])
    cells = st.columns(5)
    cells[0].metric("regressions", f"{int(totals['regressions'])} ({percent(totals['regressions'], pairs)})")
    cells[1].metric("faults, candidate only", int(totals["candidate_only"]))
    cells[2].metric("faults, reference only", int(totals["reference_only"]))
    cells[3].metric("forced KL, mean (nats)", number(totals["kl_forced_mean_nats"]))
    cells[4].metric("edit similarity, mean", number(totals["edit_similarity"]))


def show_alerts(experiment: str) -> None:
    """Firing and past alerts."""
    st.subheader("Alerts")
    found = queries.alerts(store(), experiment)
    if found.empty:
        st.success("No alert has fired for this experiment.")
        return
    for alert in found.itertuples():
        write = st.error if alert.state == "firing" else st.info
        write(f"{alert.metric} is {alert.state} since {alert.fired_at:%Y-%m-%d %H:%M:%S} UTC")
        st.text(visible(str(alert.summary)))


def show_charts(figures: summary.Summary) -> None:
    """Verdicts, faults, and what changed over time."""
    left, right = st.columns(2)
    left.subheader("Verdicts")
    left.altair_chart(charts.verdict_bar(figures.verdicts))
    right.subheader("Faults on one side only")
    if figures.faults.empty:
        right.info("No fault on one side only.")
    else:
        right.altair_chart(charts.fault_bar(figures.faults))
    st.subheader("Divergence over time")
    left, right = st.columns(2)
    left.altair_chart(charts.over_time(figures.steps, "regression_rate", "regressions, share of pairs"))
    right.altair_chart(charts.over_time(figures.steps, "kl_forced_mean_nats", "forced KL, mean (nats)"))


def show_pairs(series: summary.Series, figures: summary.Summary) -> queries.PairKey | None:
    """The filtered table; the key of the row that was chosen, if any."""
    st.subheader("Pairs")
    cells = st.columns(4)
    wanted = pair_list.PairFilter(
        verdicts=tuple(cells[0].multiselect("Verdict", sorted(figures.verdicts["verdict"]))),
        routes=tuple(cells[1].multiselect("Route", figures.routes)),
        families=tuple(cells[2].multiselect("Fault family", figures.families)),
        request_id=cells[3].text_input("Request id contains"),
    )
    after = pages_before(series, wanted)
    found = pair_list.page(store(), series, wanted, after)
    if found.empty:
        st.info("No more pair passes the filter." if after else "No pair passes the filter.")
        if after:
            st.button("First page", on_click=turn_to, args=((),))
        return None
    first = len(after) * pair_list.PAGE_ROWS
    which = f"{first + 1} to {first + len(found)} of the list" if after else f"{len(found)} pairs"
    st.caption(f"{which}, regressions first. Choose a row to see its two answers.")
    shown = found.drop(columns=["is_regression", "topic_id", "partition", "offset"])
    event = st.dataframe(
        shown,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key=f"pairs-table-{len(after)}",
    )
    back, onward, _ = st.columns([1, 1, 6])
    if after:
        back.button("First page", on_click=turn_to, args=((),))
    if len(found) == pair_list.PAGE_ROWS:
        next_page = (*after, pair_list.rank_of(found.iloc[-1]))
        onward.button("Next page", on_click=turn_to, args=(next_page,))
    chosen = event.selection.rows
    if not chosen:
        return None
    row = found.iloc[chosen[0]]
    return queries.PairKey(
        series.experiment,
        series.candidate,
        str(row["topic_id"]),
        int(row["partition"]),
        int(row["offset"]),
    )


def pages_before(series: summary.Series, wanted: pair_list.PairFilter) -> tuple[pair_list.Rank, ...]:
    """The last rows of the pages before the one that is shown: none when another list is asked for."""
    asked = (series.experiment, series.candidate, wanted)
    if st.session_state.get("list") != asked:
        st.session_state["list"] = asked
        turn_to(())
    after: tuple[pair_list.Rank, ...] = st.session_state["after"]
    return after


def turn_to(after: tuple[pair_list.Rank, ...]) -> None:
    """Show the page behind these rows."""
    st.session_state["after"] = after


def linked_pair() -> queries.PairKey | None:
    """The pair that the address bar names, if it names one."""
    asked = st.query_params
    if not {"experiment", "candidate", "topic_id", "partition", "offset"} <= set(asked):
        return None
    numbers = [asked["partition"], asked["offset"]]
    # Of the columns' types: a larger number would wrap around and show another pair.
    if not all(len(text) <= 19 and text.isascii() and text.isdigit() for text in numbers) or (
        int(numbers[0]) >= 2**32 or int(numbers[1]) >= 2**63
    ):
        st.warning("The link's partition and offset must be whole numbers of a possible size.")
        return None
    return queries.PairKey(
        asked["experiment"], asked["candidate"], asked["topic_id"], int(numbers[0]), int(numbers[1])
    )


def page() -> None:
    """The whole page."""
    st.title("Gnomon")
    st.caption("What the quantized model does differently, on mirrored production traffic. Times are UTC.")
    known = summary.experiments(store())
    if known.empty:
        st.info("The store holds no pairs yet. `gnomon demo` fills one; `gnomon run` follows your traffic.")
        return
    linked = linked_pair()
    names = list(zip(known["experiment"], known["candidate"], strict=True))
    start = (
        names.index((linked.experiment, linked.candidate))
        if linked
        and (
            linked.experiment,
            linked.candidate,
        )
        in names
        else 0
    )
    chosen = st.selectbox("Experiment", names, index=start, format_func=lambda name: f"{name[0]}: {name[1]}")
    series = summary.series_of(store(), known.iloc[names.index(chosen)])
    figures = summary.summary(store(), series)
    show_totals(series, figures.totals)
    show_alerts(series.experiment)
    show_charts(figures)
    key = show_pairs(series, figures) or linked
    if key is not None:
        for name, value in key.parameters().items():
            st.query_params[name] = str(value)
        pair_view.show(store(), key)


def page_or_reason() -> None:
    """The page; a store whose owner has ended is looked for once more before that is said."""
    try:
        page()
    except RetryError:
        forget_the_store()
        page()


def main() -> None:
    """The whole page, with what is said where the store cannot be read."""
    st.set_page_config(page_title="Gnomon", page_icon="🌘", layout="wide")
    try:
        page_or_reason()
    except GnomonError as error:
        st.error("The store cannot be read.")
        st.text(visible(str(error)))
        if st.button("Try again"):
            forget_the_store()
            st.rerun()


# Streamlit runs this as its main module; a process that is spawned beside it only loads it.
if __name__ == "__main__":
    main()
