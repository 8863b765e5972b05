"""The page's figures: the same from rollups as from the pairs, counted by hand here; and the list's pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from compare.rollups.rebuild import Rollups
from compare.store import Store, open_store
from dashboards import pair_list, summary
from tests.compare.rollups.raw_rows import TODAY, YESTERDAY, pair, put
from tests.fixtures.stores import MigratedAt

SERIES = summary.Series("nightly", "q4")
ROWS = [pair(n, YESTERDAY + n * timedelta(minutes=1), request_id=f"r-{n}-x") for n in range(400)]
OF_Q4 = [row for row in ROWS if row["candidate"] == "q4"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Iterator[Store]:
    """400 pairs over 7 hours, rolled up, and a new experiment of which the rollups do not know."""
    settings = migrated_at(tmp_path_factory.mktemp("summary"))
    with open_store(settings, role="owner") as opened:
        put(opened, "pairs", ROWS)
        Rollups(opened, settings).rebuild_touched()
        put(opened, "pairs", [pair(9000 + n, TODAY, experiment="new", candidate="q4") for n in range(3)])
        yield opened


@pytest.fixture
def rolled(store: Store, monkeypatch: pytest.MonkeyPatch) -> summary.Series:
    monkeypatch.setattr(summary, "ROLLED_PAIRS", 100)
    known = summary.experiments(store)
    (row,) = (
        row for _, row in known.iterrows() if (row["experiment"], row["candidate"]) == ("nightly", "q4")
    )
    return summary.series_of(store, row)


def mean(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known)


def check(figures: summary.Summary) -> None:
    assert figures.totals["pairs"] == len(OF_Q4)
    assert figures.totals["regressions"] == sum(row["is_regression"] for row in OF_Q4)
    for side in ("candidate", "reference"):
        assert figures.totals[f"{side}_only"] == sum(row[f"is_{side}_only_fault"] for row in OF_Q4)
    for score in ("kl_forced_mean_nats", "edit_similarity"):
        assert figures.totals[score] == pytest.approx(mean([row[score] for row in OF_Q4]), rel=1e-6)
    verdicts = Counter(row["verdict"] for row in OF_Q4)
    assert dict(zip(figures.verdicts["verdict"], figures.verdicts["pairs"], strict=True)) == verdicts
    assert list(figures.verdicts["pairs"]) == sorted(verdicts.values(), reverse=True)
    faults = Counter(
        (family, f"{side} only")
        for row in OF_Q4
        for side in ("candidate", "reference")
        for family in row[f"{side}_only_families"]
    )
    shown = zip(figures.faults["family"], figures.faults["side"], figures.faults["pairs"], strict=True)
    assert [(family, side, pairs) for family, side, pairs in shown] == [
        (*key, faults[key]) for key in sorted(faults)
    ]
    assert figures.routes == sorted({row["route"] for row in OF_Q4})
    assert figures.families == sorted({"json", "repetition", "utf8"})
    assert figures.steps["pairs"].sum() == len(OF_Q4)
    assert len(figures.steps) <= summary.MAX_STEPS


def test_the_figures_are_those_of_the_pairs(store: Store) -> None:
    check(summary.summary(store, SERIES))


def test_the_figures_from_rollups_are_the_same(store: Store, rolled: summary.Series) -> None:
    last = max(row["ingested_at"] for row in OF_Q4)
    assert rolled.until == last.replace(second=0, microsecond=0)
    figures = summary.summary(store, rolled)
    check(figures)
    for at, pairs, rate in zip(
        figures.steps["at"], figures.steps["pairs"], figures.steps["regression_rate"], strict=True
    ):
        hour = [row for row in OF_Q4 if at <= row["mirrored_at"] < at + timedelta(hours=1)]
        assert pairs == len(hour)
        assert rate == pytest.approx(sum(row["is_regression"] for row in hour) / len(hour))


def test_many_hours_are_shown_in_few_steps() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    names = [name for name in summary._SUMMED if name not in ("pairs", "regressions")]
    hours = pd.DataFrame(
        [
            {"hour": start + timedelta(hours=n), "pairs": 2, "regressions": n % 2, **dict.fromkeys(names, 0)}
            for n in range(1000)
        ]
    )
    steps = summary._steps(hours)
    assert len(steps) <= summary.MAX_STEPS
    assert steps["pairs"].sum() == 2000
    assert (steps["regression_rate"] * steps["pairs"]).sum() == pytest.approx(500)
    assert steps["kl_forced_mean_nats"].isna().all()


def test_an_experiment_that_is_not_rolled_up_yet_shows_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "ROLLED_PAIRS", 100)
    known = summary.experiments(store)
    assert list(
        zip(known["experiment"], known["candidate"], known["pairs"], known["is_rolled"], strict=True)
    ) == [
        ("new", "q4", 3, False),
        *(
            ("nightly", name, sum(row["candidate"] == name for row in ROWS), True)
            for name in sorted(
                ("q4", "q8"),
                key=lambda name: (
                    max(hour_of(row) for row in ROWS if row["candidate"] == name),
                    sum(row["candidate"] == name for row in ROWS),
                ),
                reverse=True,
            )
        ),
    ]
    assert summary.series_of(store, known.iloc[0]) == summary.Series("new", "q4")


def hour_of(row: dict[str, Any]) -> datetime:
    hour: datetime = row["mirrored_at"].replace(minute=0, second=0, microsecond=0)
    return hour


def rank(row: dict[str, Any]) -> tuple[Any, ...]:
    severity = -1.0 if row["severity"] is None else row["severity"]
    return not row["is_regression"], -severity, row["partition"], row["offset"]


@pytest.mark.parametrize(
    "wanted",
    [
        pair_list.PairFilter(),
        pair_list.PairFilter(verdicts=("diverged", "candidate_worse")),
        pair_list.PairFilter(routes=("chat", "")),
        pair_list.PairFilter(families=("json",)),
    ],
    ids=["all", "verdicts", "routes", "families"],
)
@pytest.mark.parametrize("of_rollups", [False, True])
def test_pages_follow_one_another_without_gap_or_repetition(
    store: Store, rolled: summary.Series, wanted: pair_list.PairFilter, of_rollups: bool
) -> None:
    chosen = [
        row["offset"]
        for row in sorted(OF_Q4, key=rank)
        if row["verdict"] in (wanted.verdicts or row["verdict"])
        and (not wanted.routes or row["route"] in wanted.routes)
        and (
            not wanted.families
            or set(wanted.families) & {*row["candidate_fault_families"], *row["reference_fault_families"]}
        )
    ]
    series = rolled if of_rollups else SERIES
    found: list[int] = []
    after: tuple[pair_list.Rank, ...] = ()
    # Seven pages of 40: the fifth and later ones lie behind what the rollups hold.
    for _ in range(7):
        page = pair_list.page(store, series, wanted, after, limit=40)
        found += page["offset"].tolist()
        if len(page) < 40:
            break
        after = (*after, pair_list.rank_of(page.iloc[-1]))
    assert found == chosen[:280]


def test_a_part_of_a_request_id_finds_its_pair(store: Store, rolled: summary.Series) -> None:
    for series in (SERIES, rolled):
        found = pair_list.page(store, series, pair_list.PairFilter(request_id=f"-{OF_Q4[5]['offset']}-"))
        assert found["offset"].tolist() == [OF_Q4[5]["offset"]]
