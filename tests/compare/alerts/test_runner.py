"""The runner on the real embedded engine."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from scipy.stats import binom

from compare.alerts import source
from compare.alerts.alert import Alert
from compare.alerts.runner import AlertRunner
from compare.store.client import Store
from ingest.errors import FatalError, RetryError
from ingest.settings_alerts import AlertSettings
from tests.compare.alerts.conftest import START, Writer

DECLARED = AlertSettings(tolerated_regression_rate=0.02, mean_pairs_between_false_alarms=77)


def runner(writer: Writer, settings: AlertSettings = DECLARED) -> AlertRunner:
    writer.flush()
    return AlertRunner(writer.store, settings, writer.experiment, [writer.candidate])


def faulty_run(writer: Writer, *, quiet: int = 10, faulty: int = 16) -> int:
    for offset in range(quiet + faulty):
        writer.pair(offset, worse="candidate" if offset >= quiet else "")
    writer.settled(0, quiet + faulty)
    return quiet + faulty


def alerts(writer: Writer) -> list[dict[str, Any]]:
    return writer.store.query(
        "SELECT * FROM alerts_v1 WHERE experiment = {e:String} ORDER BY metric, dimension",
        {"e": writer.experiment},
    ).dicts()


def test_fires_once_and_a_second_run_repeats_nothing(writer: Writer) -> None:
    faulty_run(writer)
    fired = runner(writer).run_once()
    # Two metrics, in the whole experiment and in the one route.
    assert sorted((a.metric, a.dimension, a.slice) for a in fired) == [
        ("candidate_only_excess", "experiment", ""),
        ("candidate_only_excess", "route", "extract"),
        ("regression_rate", "experiment", ""),
        ("regression_rate", "route", "extract"),
    ]
    before = writer.store.query(
        "SELECT * FROM detector_state FINAL WHERE kind != 'no_data' ORDER BY ALL"
    ).rows
    assert runner(writer).run_once() == []
    assert (
        writer.store.query("SELECT * FROM detector_state FINAL WHERE kind != 'no_data' ORDER BY ALL").rows
        == before
    )
    assert writer.folded() == 26
    assert len(alerts(writer)) == 4


def test_alert_holds_what_was_seen(writer: Writer) -> None:
    for offset in range(10):
        writer.pair(offset)
    for offset in range(10, 20):
        writer.pair(offset, worse="candidate", kl=float(offset % 7))
    writer.settled(0, 20)
    alert = next(a for a in runner(writer).run_once() if a.metric == "regression_rate" and not a.slice)
    # By hand: factors 3, 10, 25, 25 a fault, threshold 77 * 52; (9 + 100 + 1250) / 4 < 4004 < 8069.
    assert alert.fired_at == START + timedelta(seconds=12)
    assert alert.started_at == START + timedelta(seconds=10)
    assert (alert.candidate_faults, alert.pairs_since_start, alert.pairs_folded) == (3, 3, 13)
    assert alert.statistic == pytest.approx((3**3 + 10**3 + 2 * 25**3) / 4)
    assert (alert.threshold, alert.tolerated, alert.state, alert.severity) == (
        4004,
        0.02,
        "firing",
        "critical",
    )
    # Clopper-Pearson with all of n faulty: low = 0.025^(1/n), high = 1; the test is p0^n.
    assert (alert.observed_rate, alert.observed_high) == (1.0, 1.0)
    assert alert.observed_low == pytest.approx(0.025 ** (1 / 3))
    assert alert.test_p_value == pytest.approx(0.02**3)
    assert f"3 of 3 pairs regressed since {START:%Y-%m-%d} 03:00:10 UTC" in alert.summary
    row = next(a for a in alerts(writer) if a["metric"] == "regression_rate" and a["slice"] == "")
    assert row["alert_id"] == alert.alert_id
    assert row["started_at"] == alert.started_at
    # The evidence is of all pairs since the change. Forced KL 10 % 7 = 3, 4, 5, 6, 0, 1, 2, 3, 4, 5.
    assert row["families"] == [{"family": "repetition", "pairs": 10}]
    assert [pair["offset"] for pair in row["worst_pairs"]] == [13, 12, 19, 11, 18, 10, 17, 16, 15, 14]
    assert "faults: repetition 10" in row["summary"]


def test_alerts_of_one_cause_share_a_group(writer: Writer) -> None:
    faulty_run(writer)
    assert len({alert.group_key for alert in runner(writer).run_once()}) == 1


def test_pair_by_pair_with_restarts_equals_one_run(writer: Writer, store: Store) -> None:
    other = Writer(store)
    for offset in range(14):
        worse = "candidate" if offset % 3 == 2 else ""
        other.pair(offset, worse=worse)
        writer.pair(offset, worse=worse)
        writer.settled(offset, offset + 1)
        runner(writer).run_once()
    other.settled(0, 14)
    runner(other).run_once()

    def detectors(one: Writer) -> list[tuple[Any, ...]]:
        return one.store.query(
            "SELECT metric, dimension, slice, status, statistic, pairs_folded, candidate_faults"
            " FROM detectors_v1 WHERE experiment = {e:String} ORDER BY metric, dimension",
            {"e": one.experiment},
        ).rows

    assert detectors(writer) == detectors(other)
    # Evidence is as old as the run that gathered it.
    own = set(Alert.__struct_fields__) - {"alert_id", "group_key", "experiment", "summary"}
    assert [{k: v for k, v in a.items() if k in own} for a in alerts(writer)] == [
        {k: v for k, v in a.items() if k in own} for a in alerts(other)
    ]


def test_resolves_and_can_fire_again(writer: Writer) -> None:
    end = faulty_run(writer, quiet=0, faulty=16)
    first = runner(writer).run_once()
    assert [a.state for a in first] == ["firing"] * 4
    # Reference-only faults bring the paired detectors down, quiet pairs the regression detectors.
    for offset in range(end, end + 260):
        writer.pair(offset, worse="reference")
    writer.settled(end, end + 260)
    second = runner(writer).run_once()
    assert {a.alert_id: a.version for a in second} == {a.alert_id: 2 for a in first}
    assert [a.state for a in second] == ["resolved"] * 4
    assert all(a.resolved_at is not None and a.resolved_at > a.fired_at for a in second)
    assert {a["state"] for a in alerts(writer)} == {"resolved"}
    versions = writer.store.query(
        "SELECT count() FROM alerts FINAL WHERE experiment = {e:String}", {"e": writer.experiment}
    ).rows
    assert versions == [(8,)]
    for offset in range(end + 260, end + 280):
        writer.pair(offset, worse="candidate")
    writer.settled(end + 260, end + 280)
    third = runner(writer).run_once()
    assert [a.state for a in third] == ["firing"] * 4
    assert not {a.alert_id for a in third} & {a.alert_id for a in first}


def test_pairs_above_the_watermark_wait_for_the_late_one(writer: Writer) -> None:
    for offset in (0, 1, 3, 4):
        writer.pair(offset)
    writer.settled(0, 2)
    runner(writer).run_once()
    assert writer.folded() == 2
    writer.pair(2, second=0.5)
    writer.settled(0, 5)
    runner(writer).run_once()
    assert writer.folded() == 5
    runner(writer).run_once()
    assert writer.folded() == 5


def test_record_that_failed_and_is_compared_when_delivered_again_is_folded_once(writer: Writer) -> None:
    writer.pair(0)
    writer.failed(1)
    writer.pair(2)
    writer.settled(0, 3)
    runner(writer).run_once()
    assert writer.folded() == 2
    # The commit was lost in a crash: [0, 3) comes again, and now the endpoint answers.
    writer.pair(1)
    runner(writer).run_once()
    assert writer.folded() == 3
    writer.pair(3)
    writer.settled(0, 4)
    runner(writer).run_once()
    runner(writer).run_once()
    assert writer.folded() == 4


def test_partitions_are_folded_in_time_order_up_to_the_slowest(writer: Writer) -> None:
    for offset in range(6):
        writer.pair(offset, partition=0, second=offset)
        writer.pair(offset, partition=1, second=offset + 0.5)
    writer.settled(0, 6, partition=0)
    writer.settled(0, 2, partition=1)
    runner(writer).run_once()
    # Partition 1 is settled to second 1.5 and known to have more: partition 0 goes to second 1.
    assert writer.folded() == 4
    writer.settled(2, 6, partition=1)
    runner(writer).run_once()
    assert writer.folded() == 12


def test_partition_that_was_left_behind_does_not_hold_the_others_for_ever(writer: Writer) -> None:
    writer.pair(0, partition=1)
    writer.pair(2, partition=1)
    writer.settled(0, 1, partition=1)
    for offset in range(5):
        writer.pair(offset, partition=0, second=offset + 10)
    writer.settled(0, 5, partition=0, minute=1)
    runner(writer).run_once()
    assert writer.folded() == 1
    writer.pair(5, partition=0, second=16 * 60)
    writer.settled(5, 6, partition=0, minute=16)
    runner(writer).run_once()
    assert writer.folded() == 7


def test_small_chunks_give_the_same_result(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    for offset in range(20):
        writer.pair(offset, partition=offset % 2, second=offset, worse="candidate" if offset > 9 else "")
    writer.settled(0, 20, partition=0)
    writer.settled(0, 20, partition=1)
    monkeypatch.setattr(source, "MAX_PAIRS", 6)
    fired = runner(writer).run_once()
    assert writer.folded() == 20
    assert {alert.fired_at for alert in fired if alert.metric == "regression_rate"} == {
        START + timedelta(seconds=12)
    }


def test_same_request_counts_once_an_hour_in_a_slice(writer: Writer) -> None:
    for offset in range(10):
        writer.pair(offset, worse="candidate", request_hash="same", route=f"route-{offset % 2}")
    writer.settled(0, 10)
    assert runner(writer).run_once() == []
    assert writer.folded() == 1
    assert writer.folded(dimension="route") == 2
    # Still once when another run meets it in the same hour, and anew in the next hour.
    writer.pair(10, request_hash="same", route="route-0")
    writer.settled(10, 11)
    runner(writer).run_once()
    assert (writer.folded(), writer.folded(dimension="route")) == (1, 2)
    writer.pair(11, request_hash="same", route="route-0", second=3_600)
    writer.pair(12, request_hash="same", route="route-0", second=3_601)
    writer.settled(11, 13)
    runner(writer).run_once()
    writer.pair(13, request_hash="same", route="route-0", second=3_602)
    writer.settled(13, 14)
    runner(writer).run_once()
    assert (writer.folded(), writer.folded(dimension="route")) == (2, 3)


def test_unscored_mirrored_and_history_faulty_pairs_do_not_count(writer: Writer) -> None:
    writer.pair(0)
    writer.pair(1, verdict="unscored")
    writer.pair(2, worse="candidate", mode="mirrored")
    writer.pair(3, worse="candidate", tags=("history_faulty",))
    writer.settled(0, 4)
    runner(writer).run_once()
    assert writer.folded() == 1


def test_without_a_tolerance_a_baseline_comes_first(writer: Writer) -> None:
    settings = AlertSettings(
        baseline_min_pairs=100,
        baseline_hours=0.0,
        mean_pairs_between_false_alarms=77,
        tolerated_excess_rate=0.01,
    )
    for offset in range(99):
        writer.pair(offset, worse="candidate" if offset == 50 else "")
    writer.settled(0, 99)
    assert runner(writer, settings).run_once() == []
    query = (
        "SELECT dimension, status, tolerated, pairs_folded, baseline_pairs FROM detectors_v1"
        " WHERE experiment = {e:String} AND metric = 'regression_rate' ORDER BY dimension"
    )
    assert writer.store.query(query, {"e": writer.experiment}).rows == [
        ("experiment", "needs_baseline", None, 0, 99),
        ("route", "needs_baseline", None, 0, 99),
    ]
    for offset in range(99, 110):
        writer.pair(offset, worse="candidate")
    writer.settled(99, 110)
    fired = runner(writer, settings).run_once()
    rows = writer.store.query(query, {"e": writer.experiment}).rows
    # The 100th pair, the second faulty one, completes it. At the bound, 2 or fewer faults in 100 pairs
    # have probability 0.05 / 52. All of them are of one route, which has enough for a bound of its own.
    assert binom.cdf(2, 100, rows[0][2]) == pytest.approx(0.05 / 52, rel=1e-6)
    assert [row[1:2] + row[3:] for row in rows] == [("firing", 10, 100), ("firing", 10, 100)]
    assert {alert.tolerated for alert in fired if alert.metric == "regression_rate"} == {rows[0][2]}


def test_kill_between_state_and_alerts_loses_and_doubles_nothing(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty_run(writer)
    insert = writer.store.insert

    def dies(table: str, column_names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        if table == "alerts" and rows:
            raise RetryError("store away")
        insert(table, column_names, rows)

    monkeypatch.setattr(writer.store, "insert", dies)
    with pytest.raises(RetryError):
        runner(writer).run_once()
    monkeypatch.undo()
    assert alerts(writer) == []
    assert runner(writer).run_once() == []
    assert len(alerts(writer)) == 4
    assert writer.folded() == 26


def test_failed_state_insert_is_repeated_whole(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty_run(writer)

    def dies(table: str, column_names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        raise RetryError(f"store away for {table}")

    monkeypatch.setattr(writer.store, "insert", dies)
    with pytest.raises(RetryError, match="drift_results"):
        runner(writer).run_once()
    monkeypatch.undo()
    assert len(runner(writer).run_once()) == 4
    assert writer.folded() == 26


def test_two_threads_fold_each_pair_once(writer: Writer) -> None:
    faulty_run(writer)
    one = runner(writer)
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(one.run_once) for _ in range(2)]
    assert sorted(len(run.result()) for run in runs) == [0, 4]
    assert writer.folded() == 26


def test_unreadable_state_names_the_row(writer: Writer) -> None:
    faulty_run(writer)
    runner(writer).run_once()
    writer.store.insert(
        "detector_state",
        ("experiment", "candidate", "kind", "state", "version"),
        [(writer.experiment, writer.candidate, "cursor", "{broken", 2**62)],
    )
    with pytest.raises(FatalError, match=f"{writer.experiment}/{writer.candidate} cursor version {2**62}"):
        runner(writer).run_once()


def test_changed_tolerance_restarts_the_detector_and_keeps_the_open_alert(writer: Writer) -> None:
    end = faulty_run(writer)
    opened = {a.alert_id for a in runner(writer).run_once() if a.metric == "regression_rate"}
    writer.pair(end)
    writer.settled(end, end + 1)
    looser = msgspec.structs.replace(DECLARED, tolerated_regression_rate=0.4)
    events = runner(writer, looser).run_once()
    assert {a.alert_id for a in events if a.state == "resolved"} == opened


def test_scheduler_runs_at_once_and_stops(writer: Writer) -> None:
    faulty_run(writer)
    ran = threading.Event()
    one = AlertRunner(
        writer.store, msgspec.structs.replace(DECLARED, interval_s=0.5), writer.experiment, ["q4"]
    )
    run_once = one.run_once

    def noted() -> object:
        events = run_once()
        ran.set()
        return events

    one._ticker._job = noted
    one.start()
    one.start()
    assert ran.wait(20)
    one.stop()
    one.stop()
    assert len(alerts(writer)) == 4
