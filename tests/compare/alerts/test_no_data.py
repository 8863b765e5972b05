"""The no-data detector: by hand-made clocks, and on the real embedded engine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from compare.alerts.no_data import NoData, NoDataState
from compare.alerts.no_data_words import Missing, cause
from compare.alerts.runner import AlertRunner
from ingest.settings_alerts import AlertSettings
from tests.compare.alerts.conftest import START, Writer

MINUTE = 60_000
DETECTOR = NoData("e", "q4", after_ms=30 * MINUTE, interval_ms=MINUTE)
SETTINGS = AlertSettings(no_data_after_s=1_800, interval_s=60)


def watched(minutes: list[int], newest: list[int]) -> NoDataState:
    """The state after looks at these minutes, which found these newest pairs."""
    state: NoDataState | None = None
    for minute, newest_ms in zip(minutes, newest, strict=True):
        state = DETECTOR.look(state, newest_ms, minute * MINUTE)
    assert state is not None
    return state


def test_silence_is_due_after_the_time_that_was_asked_for() -> None:
    state = watched([0, *range(1, 30)], [7] * 30)
    assert not DETECTOR.is_due(state)
    assert DETECTOR.is_due(DETECTOR.look(state, 7, 30 * MINUTE))


def test_a_new_pair_begins_anew() -> None:
    state = watched([0, *range(1, 40)], [7] * 20 + [8] * 20)
    assert state.silent_ms == 19 * MINUTE
    assert state.newest_ms == 8
    assert state.silent_since_ms == 20 * MINUTE


def test_a_weekend_without_a_runner_is_no_silence() -> None:
    state = watched([0, 5, 2 * 24 * 60], [7, 7, 7])
    # At most a third of the limit for the look after the gap.
    assert state.silent_ms == 5 * MINUTE + 10 * MINUTE


def test_rare_looks_count_in_full_up_to_a_third_of_the_limit() -> None:
    assert DETECTOR.is_due(watched([0, 10, 20, 30], [7] * 4))


def test_a_clock_that_goes_back_adds_nothing() -> None:
    assert watched([10, 5, 6], [7, 7, 7]).silent_ms == MINUTE


def test_fires_once_and_is_resolved_by_a_pair() -> None:
    state, alert = DETECTOR.fire(watched([0, 10, 20, 30], [7] * 4), Missing())
    assert (alert.state, alert.metric, alert.category, alert.severity) == (
        "firing", "no_data", "no_data", "warning",
    )  # fmt: skip
    assert (alert.statistic, alert.threshold) == (1800, 1800)
    later = DETECTOR.look(state, 7, 40 * MINUTE)
    assert not DETECTOR.is_due(later)
    assert not DETECTOR.is_over(later)
    came = DETECTOR.look(later, 9, 41 * MINUTE)
    assert DETECTOR.is_over(came)
    after, resolved = DETECTOR.resolve(came)
    assert (resolved.alert_id, resolved.version, resolved.state) == (alert.alert_id, 2, "resolved")
    assert resolved.resolved_at == datetime.fromtimestamp(41 * 60, UTC)
    assert after.alert is None
    with pytest.raises(ValueError, match="no_data of e/q4: no alert is open"):
        DETECTOR.resolve(after)


def test_records_that_failed_are_critical_and_named() -> None:
    failed = Missing((("failed", "endpoint_away", 12), ("skipped", "sampled_out", 3)))
    _, alert = DETECTOR.fire(watched([0, 30], [7, 7]), failed)
    assert alert.severity == "critical"
    assert "records since then: failed (endpoint_away) 12, skipped (sampled_out) 3" in alert.summary
    assert not Missing((("skipped", "sampled_out", 3),)).has_failed
    assert "unscored 4, compared with another candidate 5" in cause(Missing(unscored=4, others=5))


class Clock:
    """The runner's wall clock."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC).timestamp()

    def __call__(self) -> float:
        return self.now


def runner(writer: Writer, clock: Clock, *candidates: str) -> AlertRunner:
    names = candidates or (writer.candidate,)
    made = AlertRunner(writer.store, SETTINGS, writer.experiment, names)
    made._no_data._clock = clock
    return made


def watch(writer: Writer, clock: Clock, looks: int, *candidates: str) -> list[tuple[str, str]]:
    """(candidate, state) of what a new runner every ten minutes raised and resolved."""
    found: list[tuple[str, str]] = []
    for _ in range(looks):
        clock.now += 600
        events = runner(writer, clock, *candidates).run_once()
        found += [(one.candidate, one.state) for one in events if one.metric == "no_data"]
    return found


def test_restarted_for_every_look_it_fires_once_and_names_what_failed(writer: Writer) -> None:
    clock = Clock()
    # `failed` stores its records at START.
    writer.pair(0, second=-60)
    writer.settled(0, 1)
    for offset in range(1, 4):
        writer.failed(offset)
    assert watch(writer, clock, 3) == []
    assert watch(writer, clock, 3) == [("q4", "firing")]
    (row,) = writer.store.query(
        "SELECT * FROM alerts_v1 WHERE experiment = {e:String}", {"e": writer.experiment}
    ).dicts()
    assert (row["state"], row["severity"], row["metric"], row["slice"]) == (
        "firing", "critical", "no_data", "",
    )  # fmt: skip
    assert row["started_at"] == START - timedelta(minutes=1)
    assert "failed (endpoint_away) 3" in row["summary"]
    writer.pair(4)
    writer.settled(1, 5)
    assert watch(writer, clock, 2) == [("q4", "resolved")]


def test_without_any_pair_it_counts_from_the_first_look(writer: Writer) -> None:
    clock = Clock()
    assert watch(writer, clock, 4) == [("q4", "firing")]
    (row,) = writer.store.query(
        "SELECT summary, group_key FROM alerts_v1 WHERE experiment = {e:String}", {"e": writer.experiment}
    ).rows
    assert "no record was delivered since" in row[0]


def test_candidates_that_fall_silent_together_are_one_group(writer: Writer) -> None:
    clock = Clock()
    assert watch(writer, clock, 4, "q4", "q8") == [("q4", "firing"), ("q8", "firing")]
    rows = writer.store.query(
        "SELECT DISTINCT group_key FROM alerts_v1 WHERE experiment = {e:String}", {"e": writer.experiment}
    ).rows
    assert len(rows) == 1


def test_unscored_pairs_are_no_data_and_mirrored_ones_are(writer: Writer) -> None:
    clock = Clock()
    writer.pair(0, mode="mirrored")
    writer.settled(0, 1)
    assert watch(writer, clock, 3) == []
    writer.pair(1, mode="mirrored")
    writer.pair(2, verdict="unscored")
    writer.settled(1, 3)
    assert watch(writer, clock, 4) == [("q4", "firing")]


def test_switched_off_it_keeps_quiet(writer: Writer) -> None:
    clock = Clock()
    off = msgspec.structs.replace(SETTINGS, no_data_after_s=0)
    made = AlertRunner(writer.store, off, writer.experiment, ["q4"])
    made._no_data._clock = clock
    for _ in range(3):
        clock.now += timedelta(days=1).total_seconds()
        assert made.run_once() == []
