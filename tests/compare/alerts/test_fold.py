"""The fold as a whole, in memory: baselines, slices, kinds, and that chunks are no edges."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np
import pytest

from compare.alerts.alert import Alert
from compare.alerts.chunk import Seen
from compare.alerts.drift import HourResult
from compare.alerts.fold import Folder, FoldState
from compare.alerts.series import FoldedPair, SeriesKey
from ingest.settings_alerts import AlertSettings

SETTINGS = AlertSettings(
    mean_pairs_between_false_alarms=500, baseline_min_pairs=300, baseline_hours=0.0, max_slices=6
)


class World:
    """Records of one candidate, one every 10 seconds."""

    def __init__(self, seed: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.records: list[tuple[int, FoldedPair]] = []

    def add(self, n: int, *, faulty: float = 0.01, away: float = 0.0, **change: Any) -> None:
        rng = self.rng
        for _ in range(n):
            offset = len(self.records)
            ms = offset * 10_000
            route, tenant = f"r{rng.integers(2)}", f"t{rng.integers(3)}"
            if rng.random() < away:
                pair = FoldedPair(topic_id="t", partition=0, offset=offset, mirrored_ms=ms, outcome="failed")
                self.records.append((ms, pair))
                continue
            is_bad = bool(rng.random() < faulty)
            values: dict[str, Any] = {
                "cosine_similarity": float(rng.beta(80, 7)),
                "schema_validity": float(rng.random() < 0.98) if rng.random() < 0.4 else None,
                "top1_agreement_forced": float(rng.beta(60, 5)),
                "kl_forced": float(rng.lognormal(-5, 0.7)) if rng.random() < 0.5 else None,
                "latency_ratio": float(rng.lognormal(0, 0.3)),
                "request_hash": f"h{offset}",
            }
            values |= {
                name: one(values[name]) if callable(one) and values[name] is not None else values[name]
                for name, one in change.items()
            }
            pair = FoldedPair(
                topic_id="t", partition=0, offset=offset, mirrored_ms=ms, is_counted=True,
                slices=(route, tenant, "", "", "", ""), is_regression=is_bad, is_candidate_only_fault=is_bad,
                is_reference_only_fault=not is_bad and bool(rng.random() < 0.01),
                **values,
            )  # fmt: skip
            self.records.append((ms, pair))


def fold(
    world: World, settings: AlertSettings = SETTINGS, cuts: list[int] | None = None
) -> tuple[FoldState, list[Alert], dict[tuple[SeriesKey, int], HourResult]]:
    """Fold everything, restarting with the stored state at each cut."""
    state, seen, events = FoldState(), Seen(), list[Alert]()
    results: dict[tuple[SeriesKey, int], HourResult] = {}
    edges = [0, *(cuts or []), len(world.records)]
    for start, end in zip(edges, edges[1:], strict=False):
        folder = Folder(experiment="e", candidate="c", settings=settings, state=state, seen=seen)
        folder.fold(world.records[start:end], {})
        after = folder.state_after(state.version + 1, {})
        # Only what the store keeps goes on.
        series = [msgspec.json.encode(one) for one in after.series.values()]
        kept = [msgspec.json.decode(one, type=type(next(iter(after.series.values())))) for one in series]
        baselines = {
            name: msgspec.json.decode(msgspec.json.encode(one), type=type(one))
            for name, one in after.baselines.items()
        }
        state = msgspec.structs.replace(
            after, series={one.key: one for one in kept}, baselines=baselines, results=(), closed=()
        )
        seen, events = folder.seen, events + folder.events
        results |= {(one.key, one.hour_ms): one for one in after.results}
    return msgspec.structs.replace(state, version=0), events, results


def eventful() -> World:
    world = World()
    world.add(900)
    world.add(300, faulty=0.3, cosine_similarity=lambda x: x - 0.2, kl_forced=lambda x: 3 * x)
    world.add(1200)
    return world


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("hours", [0.0, 2.0, 4.5])
def test_any_cut_into_chunks_and_restart_gives_the_same(seed: int, hours: float) -> None:
    """Through the end of a baseline, its refinement (or that being given up), alarms and recovery."""
    settings = msgspec.structs.replace(SETTINGS, baseline_hours=hours)
    world, rng = eventful(), random.Random(seed)
    cuts = sorted(rng.sample(range(1, len(world.records)), 25))
    whole, pieces = fold(world, settings), fold(world, settings, cuts)
    assert {alert.state for alert in whole[1]} == {"firing", "resolved"}
    assert pieces == whole


def test_each_kind_fires_on_its_change_and_resolves() -> None:
    _, events, _ = fold(eventful())
    whole = [(one.metric, one.state) for one in events if one.dimension == "experiment"]
    for metric in ("regression_rate", "candidate_only_excess", "cosine_similarity", "kl_forced"):
        assert whole.count((metric, "firing")) == 1
        assert whole.count((metric, "resolved")) == 1
    quiet = {"schema_validity", "top1_agreement_forced", "latency_ratio", "failed_rate", "skipped_rate"}
    assert not {metric for metric, _ in whole} & quiet


def test_endpoint_that_is_away_moves_the_accounting_and_no_drift() -> None:
    world = World()
    world.add(600, away=0.01)
    world.add(400, away=0.9)
    world.add(600, away=0.01)
    state, events, _ = fold(world)
    assert {(one.metric, one.category) for one in events} == {("failed_rate", "accounting")}
    assert [one.state for one in events] == ["firing", "resolved"]
    assert all(key.dimension == "experiment" for key in state.series if key.metric == "failed_rate")


def test_baseline_is_refined_after_its_hours_unless_the_metric_raised_an_alert() -> None:
    settings = msgspec.structs.replace(SETTINGS, baseline_hours=3.0)
    quiet = World()
    quiet.add(1500)
    state, _, _ = fold(quiet, settings)
    one = state.baselines["cosine_similarity"]
    # 3 hours of a pair each 10 s: pairs 0 to 1,080.
    assert (one.version, one.whole.moments.n, one.to_ms) == (2, 1081, 10_800_000)
    assert set(one.own["route"]) == {"r0", "r1"}
    key = SeriesKey("cosine_similarity", "experiment", "")
    spec = state.series[key].spec
    assert spec is not None
    assert (spec.baseline_version, state.series[key].learning) == (2, None)
    noisy = World()
    noisy.add(700)
    noisy.add(800, cosine_similarity=lambda x: x - 0.2)
    state, _, _ = fold(noisy, settings)
    assert state.baselines["cosine_similarity"].version == 1
    assert state.baselines["latency_ratio"].version == 2
    assert all(one.learning is None for one in state.series.values())


def test_slices_beyond_the_cap_are_counted_and_not_watched() -> None:
    world = World()
    world.add(200)
    state, _, _ = fold(world, msgspec.structs.replace(SETTINGS, max_slices=4))
    watched = {(key.dimension, key.value) for key in state.series} - {("experiment", "")}
    assert len(watched) == 4
    routes, tenants = ({v for d, v in watched if d == name} for name in ("route", "tenant"))
    others = [
        pair for _, pair in world.records if pair.slices[0] not in routes or pair.slices[1] not in tenants
    ]
    assert state.refused == {"tenant": len(others)}


def test_request_counts_once_an_hour_in_each_slice() -> None:
    world = World()
    world.add(30, request_hash=lambda _: "same")
    declared = msgspec.structs.replace(SETTINGS, tolerated_regression_rate=0.02)
    state, _, _ = fold(world, declared, [7, 13])
    counts = {
        (key.dimension, key.value): one.detector.pairs
        for key, one in state.series.items()
        if key.metric == "regression_rate" and one.detector is not None
    }
    assert counts == {("experiment", ""): 1} | {
        (name, pair.slices[place]): 1
        for _, pair in world.records
        for place, name in enumerate(("route", "tenant"))
    }


def test_hour_results_add_up_to_what_was_folded() -> None:
    world = World()
    world.add(1100)
    declared = msgspec.structs.replace(SETTINGS, tolerated_regression_rate=0.05)
    _, _, results = fold(world, declared, [100, 361, 900])
    mine = {
        hour: one
        for (key, hour), one in results.items()
        if key == SeriesKey("regression_rate", "experiment", "")
    }
    assert {hour: one.pairs for hour, one in mine.items()} == {
        0: 360,
        3_600_000: 360,
        7_200_000: 360,
        10_800_000: 20,
    }
    first = [pair.is_regression for _, pair in world.records[:360]]
    assert mine[0].observed == pytest.approx(sum(first) / 360)
    assert (mine[0].tolerated, mine[0].baseline, mine[0].baseline_version) == (0.05, 0.05, 0)
