"""The page's figures: the same from rollups as from the pairs, counted by hand here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

from compare.rollups.rebuild import Rollups
from compare.store import Store, open_store
from dashboards.questions import summary
from dashboards.questions.accounts import lag
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
    (row,) = (row for row in known if (row["experiment"], row["candidate"]) == ("nightly", "q4"))
    return summary.series_of(store, row)


def check(figures: summary.Summary, rows: list[dict[str, Any]] = OF_Q4) -> None:
    assert figures.totals["pairs"] == len(rows)
    assert figures.totals["regressions"] == sum(row["is_regression"] for row in rows)
    for side in ("candidate", "reference"):
        assert figures.totals[f"{side}_only_faults"] == sum(row[f"is_{side}_only_fault"] for row in rows)
    for score in summary.SCORES:
        known = [row[score] for row in rows if row[score] is not None]
        assert figures.totals[f"{score}_pairs"] == len(known)
        assert figures.totals[score] == pytest.approx(sum(known) / len(known), rel=1e-6)
    checked = [
        row["candidate_is_schema_valid"]
        for row in rows
        if row["reference_is_schema_valid"] and row["candidate_is_schema_valid"] is not None
    ]
    assert figures.totals["schema_pairs"] == len(checked) > 0
    assert figures.totals["schema_regressions"] == checked.count(0)
    verdicts = Counter(row["verdict"] for row in rows)
    assert dict(zip(figures.verdicts["verdict"], figures.verdicts["pairs"], strict=True)) == verdicts
    assert list(figures.verdicts["pairs"]) == sorted(verdicts.values(), reverse=True)
    faults = Counter(
        (family, f"{side} only")
        for row in rows
        for side in ("candidate", "reference")
        for family in row[f"{side}_only_families"]
    )
    shown = zip(figures.faults["family"], figures.faults["side"], figures.faults["pairs"], strict=True)
    assert [(family, side, pairs) for family, side, pairs in shown] == [
        (*key, faults[key]) for key in sorted(faults)
    ]
    assert figures.steps["pairs"].sum() == len(rows)
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


@pytest.mark.parametrize("of_rollups", [False, True])
def test_a_range_narrows_the_figures(store: Store, rolled: summary.Series, of_rollups: bool) -> None:
    # Whole hours, so that the rollups can tell.
    start = YESTERDAY + timedelta(hours=1)
    end = start + timedelta(hours=3)
    inside = [row for row in OF_Q4 if start <= row["mirrored_at"] < end]
    assert 0 < len(inside) < len(OF_Q4)
    series = rolled if of_rollups else SERIES
    check(summary.summary(store, series, start, end), inside)
    found = summary.quantiles(store, series, start, end)
    for name, (score, level) in summary.QUANTILES.items():
        known = [row[score] for row in inside if row[score] is not None]
        # The rollups' digests are exact to a few ranks among so few values; scores are Float32.
        low, high = np.quantile(known, [max(level - 0.05, 0), min(level + 0.05, 1)])
        value = found[name]
        assert value is not None and low * (1 - 1e-6) <= value <= high * (1 + 1e-6)


def test_the_lag_is_of_the_last_hour(store: Store, rolled: summary.Series) -> None:
    last = max(row["ingested_at"] for row in OF_Q4)
    # Rows are whole minutes apart: the last hour holds its sixty minutes either way.
    lags = [
        (row["ingested_at"] - row["mirrored_at"]).total_seconds()
        for row in OF_Q4
        if row["ingested_at"] > last - timedelta(hours=1)
    ]
    for series in (SERIES, rolled):
        found = lag(store, series)
        assert found is not None and found["records"] == len(lags)
        assert found["mean_s"] == pytest.approx(sum(lags) / len(lags))
        assert found["max_s"] == max(lags)
    assert lag(store, summary.Series("nobody", "q4")) is None


def test_an_open_range_and_one_from_long_ago_are_the_whole(store: Store, rolled: summary.Series) -> None:
    for series in (SERIES, rolled):
        whole = summary.quantiles(store, series)
        assert None not in whole.values()
        for year in (1960, 1971):
            start, end = datetime(year, 1, 1, 5, 30, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
            assert summary.quantiles(store, series, start, end) == whole
            check(summary.summary(store, series, start, end))


def test_an_empty_range_has_no_figures(store: Store, rolled: summary.Series) -> None:
    for series in (SERIES, rolled):
        figures = summary.summary(store, series, TODAY + timedelta(days=1))
        assert figures.totals["pairs"] == 0
        assert figures.totals["kl_forced_mean_nats"] is figures.totals["regression_rate"] is None
        assert figures.verdicts.empty and figures.faults.empty and figures.steps.empty
        found = summary.quantiles(store, series, TODAY + timedelta(days=1))
        assert set(found.values()) == {None}


def test_many_hours_are_shown_in_few_steps() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    names = [name for name in summary.SUMMED if name not in ("pairs", "regressions")]
    hours = pd.DataFrame(
        [
            {"at": start + timedelta(hours=n), "pairs": 2, "regressions": n % 2, **dict.fromkeys(names, 0)}
            for n in range(1000)
        ]
    )
    steps = summary.steps_of(hours)
    assert len(steps) <= summary.MAX_STEPS
    assert steps["pairs"].sum() == 2000
    assert (steps["regression_rate"] * steps["pairs"]).sum() == pytest.approx(500)
    assert steps["kl_forced_mean_nats"].isna().all()


def test_an_experiment_that_is_not_rolled_up_yet_shows_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "ROLLED_PAIRS", 100)
    known = summary.experiments(store)
    assert [(row["experiment"], row["candidate"], row["pairs"], row["is_rolled"]) for row in known] == [
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
    assert summary.series_of(store, known[0]) == summary.Series("new", "q4")


def hour_of(row: dict[str, Any]) -> datetime:
    hour: datetime = row["mirrored_at"].replace(minute=0, second=0, microsecond=0)
    return hour
