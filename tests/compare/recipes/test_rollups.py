"""Recipes that read the rollups."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from scipy.stats import binomtest

from compare.result import Family, VerdictKind
from compare.rollups.rebuild import Rollups
from ingest.errors import GnomonError
from tests.compare.recipes.world import NOON, World, column

KL = [0.1, 0.2, 0.4]


@pytest.fixture
def rolled(world: World) -> World:
    """Two hours: 3 pairs and a regression on `chat`, then 2 pairs on `extract` of which one is unscored."""
    for value in KL:
        world.pair(scores={"kl_forced_mean_nats": value}, request={"route": "chat"})
    worse, families = VerdictKind.CANDIDATE_WORSE, (Family.JSON,)
    world.pair(verdict=worse, candidate_only=families, request={"route": "chat"})
    later = NOON + timedelta(hours=1)
    world.pair(at=later, request={"route": "extract"})
    world.pair(at=later, verdict=VerdictKind.UNSCORED, request={"route": "extract"})
    world.flush()
    Rollups(world.store, world.settings).rebuild_touched()
    return world


def test_hourly_rates(rolled: World) -> None:
    rows = rolled.ask("hourly_rates")
    assert column(rows, "hour", "pairs", "counted_pairs", "regression_rate", "candidate_only_rate") == [
        (NOON, 4, 4, 0.25, 0.25),
        (NOON + timedelta(hours=1), 2, 1, 0.0, 0.0),
    ]
    assert column(rows, "reference_only_rate", "forced_pairs") == [(0.0, 3), (0.0, 0)]
    assert rows[0]["kl_forced_mean"] == pytest.approx(sum(KL) / 3, rel=1e-6)
    assert KL[1] <= rows[0]["kl_forced_p99"] <= KL[2] + 1e-6
    assert (rows[1]["kl_forced_mean"], rows[1]["kl_forced_p99"]) == (None, None)


def test_worst_slices(rolled: World) -> None:
    rows = rolled.ask("worst_slices")
    assert column(rows, "value", "counted", "regressed", "rate") == [
        ("chat", 4, 1, 0.25),
        ("extract", 1, 0, 0.0),
    ]
    interval = binomtest(1, 4).proportion_ci(method="wilson")
    assert (rows[0]["rate_low"], rows[0]["rate_high"]) == pytest.approx((interval.low, interval.high))
    assert column(rolled.ask("worst_slices", dimension="candidate_family"), "value", "counted") == [
        ("json", 1)
    ]
    assert len(rolled.ask("worst_slices", limit="1")) == 1
    with pytest.raises(GnomonError, match="dimension must be one of"):
        rolled.ask("worst_slices", dimension="colour")


def test_records_by_minute(world: World) -> None:
    # Ingested now, so that the window of a day holds them.
    at = world.store.query("SELECT now()").rows[0][0] - timedelta(hours=1)
    for seconds in (0, 1, 61):
        world.pair(at=at.replace(second=0) + timedelta(seconds=seconds))
    world.flush()
    Rollups(world.store, world.settings).rebuild_touched()
    rows = world.ask("records_by_minute")
    minutes = Counter(row["minute"] for row in rows for _ in range(row["records_sum"]))
    first = at.replace(second=0)
    assert minutes == {first: 2, first + timedelta(minutes=1): 1}
    assert {row["kind"] for row in rows} == {"compared"}
    lag = world.store.query(
        "SELECT max(dateDiff('millisecond', mirrored_at, ingested_at)) / 1000 FROM pairs_v1"
        " WHERE experiment = {experiment:String}",
        {"experiment": world.experiment},
    ).rows[0][0]
    assert max(row["lag_max_s"] for row in rows) == lag
    assert all(row["lag_mean_s"] <= row["lag_max_s"] for row in rows)
