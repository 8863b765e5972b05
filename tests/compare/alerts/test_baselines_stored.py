"""Baselines and drift results through the store, repeated after a kill, and chosen by a person."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from compare.alerts.baseline_choice import choose_window, learn_anew, learnable
from compare.alerts.metrics import BY_NAME
from compare.alerts.runner import AlertRunner
from compare.alerts.series import SeriesKey
from compare.alerts.state import load_state
from ingest.errors import FatalError, RetryError
from ingest.settings_alerts import AlertSettings
from tests.compare.alerts.conftest import START, Writer

SETTINGS = AlertSettings(
    baseline_min_pairs=100, baseline_hours=0.0, mean_pairs_between_false_alarms=77, tolerated_excess_rate=0.1
)
COSINE = SeriesKey("cosine_similarity", "experiment", "")


def write(writer: Writer, start: int, end: int, *, cosine: float = 0.9) -> None:
    for offset in range(start, end):
        writer.pair(
            offset,
            worse="candidate" if offset % 40 == 7 else "",
            kl=0.01 + offset % 7 / 1000,
            cosine_similarity=cosine + offset % 5 / 100,
            reference_is_schema_valid=float(offset % 2),
            candidate_is_schema_valid=float(offset % 3 > 0),
            latency_ratio=1.0 + offset % 11 / 10,
            tenant="acme",
        )
    writer.settled(start, end)


def run(writer: Writer) -> list[Any]:
    return list(AlertRunner(writer.store, SETTINGS, writer.experiment, ["q4"]).run_once())


def baselines(writer: Writer) -> list[tuple[Any, ...]]:
    return writer.store.query(
        "SELECT metric, version, chosen_by, is_open, pairs, from_at, to_at FROM alert_baselines_v1"
        " WHERE experiment = {e:String} ORDER BY metric, version",
        {"e": writer.experiment},
    ).rows


def test_each_metric_closes_its_baseline_at_its_own_hundredth_pair(writer: Writer) -> None:
    write(writer, 0, 260)
    run(writer)
    first, hundredth = START, START + timedelta(seconds=99)
    rows = {row[0]: row[1:] for row in baselines(writer)}
    for metric in ("cosine_similarity", "kl_forced", "latency_ratio", "regression_rate", "failed_rate"):
        assert rows[metric] == (1, "program", False, 100, first, hundredth)
    # Only where the reference fits the schema: every second pair, from the second on.
    second, last = START + timedelta(seconds=1), START + timedelta(seconds=199)
    assert rows["schema_validity"] == (1, "program", False, 100, second, last)
    # The excess is declared, and no pair has a forced agreement.
    assert rows.keys().isdisjoint({"candidate_only_excess", "top1_agreement_forced"})


def test_kill_between_the_baseline_and_the_state_repeats_the_fold_whole(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Writer(writer.store)
    for one in (writer, other):
        write(one, 0, 150)
    insert = writer.store.insert

    def dies(table: str, column_names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        if table == "detector_state":
            raise RetryError("store away")
        insert(table, column_names, rows)

    monkeypatch.setattr(writer.store, "insert", dies)
    with pytest.raises(RetryError):
        run(writer)
    monkeypatch.undo()
    assert len(baselines(writer)) == 7
    assert load_state(writer.store, writer.experiment, "q4")[0].baselines == {}
    run(writer)
    run(other)
    mine, its = (load_state(one.store, one.experiment, "q4")[0] for one in (writer, other))
    assert mine.series == its.series
    assert mine.baselines == its.baselines


def test_person_chooses_a_time_and_the_detectors_start_anew(writer: Writer) -> None:
    write(writer, 0, 300)
    run(writer)
    metrics = learnable(SETTINGS, ["cosine_similarity", "schema_validity"])
    start_ms = round(START.timestamp() * 1000)
    chosen, few = choose_window(
        writer.store, SETTINGS, writer.experiment, "q4", metrics,
        start_ms=start_ms + 100_000, end_ms=start_ms + 249_000, note="after the deploy",
    )  # fmt: skip
    # 150 pairs, of which half have a schema.
    assert [(one.metric, one.version, one.whole.moments.n) for one in chosen] == [
        ("cosine_similarity", 4, 150)
    ]
    assert few == {"schema_validity": 75}
    write(writer, 300, 302)
    run(writer)
    state, _ = load_state(writer.store, writer.experiment, "q4")
    series = state.series[COSINE]
    assert series.spec is not None
    assert series.detector is not None
    assert (series.spec.baseline_version, series.detector.pairs) == (4, 2)
    rows = writer.store.query(
        "SELECT baseline_version, baseline_pairs FROM detectors_v1 WHERE experiment = {e:String}"
        " AND metric = 'cosine_similarity' ORDER BY dimension",
        {"e": writer.experiment},
    ).rows
    # All of its pairs have one route and one tenant, which so have bounds of their own.
    assert rows == [(4, 150)] * 3


def test_reset_learns_from_the_next_pairs(writer: Writer) -> None:
    write(writer, 0, 120)
    run(writer)
    (opened,) = learn_anew(writer.store, writer.experiment, "q4", [BY_NAME["cosine_similarity"]])
    assert opened.is_open
    write(writer, 120, 180, cosine=0.7)
    assert [alert for alert in run(writer) if alert.metric == "cosine_similarity"] == []
    state, _ = load_state(writer.store, writer.experiment, "q4")
    assert state.baselines["cosine_similarity"] == opened
    assert state.series[COSINE].status == "needs_baseline"
    write(writer, 180, 240, cosine=0.7)
    run(writer)
    rows = [row[1:5] for row in baselines(writer) if row[0] == "cosine_similarity"]
    assert rows == [(1, "program", False, 100), (4, "person", True, 0), (5, "program", False, 100)]
    state, _ = load_state(writer.store, writer.experiment, "q4")
    assert state.series[COSINE].status == "running"
    assert state.baselines["cosine_similarity"].whole.moments.mean == pytest.approx(0.72, abs=1e-3)


def test_what_cannot_be_learned_is_named() -> None:
    with pytest.raises(FatalError, match="no metric is called cosine; there are regression_rate, "):
        learnable(SETTINGS, ["cosine"])
    with pytest.raises(FatalError, match=r"alerts\.tolerated_excess_rate, which is declared"):
        learnable(SETTINGS, ["candidate_only_excess"])
    assert "candidate_only_excess" not in [metric.name for metric in learnable(SETTINGS, [])]


def test_drift_results_hold_each_hour_once(writer: Writer) -> None:
    for offset in range(130):
        writer.pair(offset, second=offset * 60.0, cosine_similarity=0.9 + offset % 2 / 100)
        if offset in (100, 110, 129):
            writer.settled(0, offset + 1)
            run(writer)
    rows = writer.store.query(
        "SELECT hour_at, pairs, observed, baseline, status, baseline_version FROM drift_v1"
        " WHERE experiment = {e:String} AND metric = 'cosine_similarity' AND dimension = 'experiment'"
        " ORDER BY hour_at",
        {"e": writer.experiment},
    ).rows
    # The first 100 minutes are the baseline: 20 pairs are left of the second hour, 10 are of the third.
    assert [(row[0] - START, row[1]) for row in rows] == [(timedelta(hours=1), 20), (timedelta(hours=2), 10)]
    for row in rows:
        assert row[2:4] == (pytest.approx(0.905, abs=1e-6), pytest.approx(0.905, abs=1e-6))
        assert row[4:] == ("running", 1)


def test_records_that_became_no_pair_move_the_accounting_only(writer: Writer) -> None:
    write(writer, 0, 110)
    for offset in range(110, 150):
        writer.failed(offset)
    writer.pair(150, verdict="unscored")
    writer.settled(110, 151)
    events = run(writer)
    assert {(one.metric, one.category, one.state) for one in events} == {
        ("failed_rate", "accounting", "firing")
    }
    assert writer.folded("unscored_rate") == 51
    state, _ = load_state(writer.store, writer.experiment, "q4")
    detector = state.series[SeriesKey("unscored_rate", "experiment", "")].detector
    assert detector is not None
    assert (detector.pairs, detector.candidate) == (51, 1)
    assert writer.folded("regression_rate") == 10
    # Delivered again, one of them is compared: it is folded then, once.
    writer.pair(120)
    writer.flush()
    run(writer)
    assert writer.folded("regression_rate") == 11
    assert writer.folded("unscored_rate") == 52


def test_slices_beyond_the_cap_are_told_once(writer: Writer, caplog: pytest.LogCaptureFixture) -> None:
    few = msgspec.structs.replace(SETTINGS, max_slices=2)
    for start in (0, 20):
        for offset in range(start, start + 20):
            writer.pair(offset, tenant=f"t-{offset % 4}")
        writer.settled(start, start + 20)
        AlertRunner(writer.store, few, writer.experiment, ["q4"]).run_once()
    told = [record.getMessage() for record in caplog.records if "max_slices" in record.getMessage()]
    assert told == [
        f"alerts of {writer.experiment}/q4: over 2 slices: further ones of tenant are counted, not watched"
        " (alerts.max_slices)"
    ]
    rows = writer.store.query(
        "SELECT dimension, status, pairs_folded FROM detectors_v1"
        " WHERE experiment = {e:String} AND metric = ''",
        {"e": writer.experiment},
    ).rows
    # One route and one tenant are watched; three tenants of four are not.
    assert rows == [("tenant", "slices_refused", 30)]
