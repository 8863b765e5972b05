"""A backtest says what a live runner did: on the real embedded engine, same history, chunk by chunk."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from compare.alerts import source
from compare.alerts.alert import Alert
from compare.alerts.backtest import Backtest, Period, backtest
from compare.alerts.backtest_words import span_text, told
from compare.alerts.baseline_choice import learn_anew
from compare.alerts.metrics import BY_NAME
from compare.alerts.runner import AlertRunner
from compare.cli.alerts_backtest import _which
from compare.cli.main import cli
from compare.store.client import Store
from ingest.errors import FatalError
from ingest.settings import ExperimentSettings
from ingest.settings_alerts import AlertSettings
from tests.compare.alerts.conftest import START, Writer

SETTINGS = AlertSettings(baseline_min_pairs=60, mean_pairs_between_false_alarms=20, no_data_after_s=0)
START_MS = round(START.timestamp() * 1000)
WHOLE = Period(START_MS, START_MS + 86_400_000)


def history(writer: Writer) -> int:
    """Quiet, bad, good again, over hours and two routes and partitions; where the quiet part ends, in s."""
    rng = random.Random(4)
    second = 0
    offsets = [0, 0]
    for part, rate in (("quiet", 0.02), ("bad", 0.9), ("good", 0.0)):
        for _ in range({"quiet": 160, "bad": 40, "good": 400}[part]):
            second += rng.randrange(5, 60)
            partition = rng.randrange(2)
            writer.pair(
                offsets[partition],
                partition=partition,
                second=second,
                route=rng.choice(["extract", "chat"]),
                worse="candidate" if rng.random() < rate else "",
            )
            offsets[partition] += 1
        if part == "quiet":
            ends = second
    writer.flush()
    for partition in range(2):
        writer.settled(0, offsets[partition], partition=partition)
    return ends


def essence(alerts: list[Alert]) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(alert) for alert in alerts]


def live(writer: Writer, settings: AlertSettings = SETTINGS) -> list[Alert]:
    return AlertRunner(writer.store, settings, writer.experiment, [writer.candidate]).run_once()


def replayed(
    writer: Writer, settings: AlertSettings = SETTINGS, period: Period = WHOLE, **more: Any
) -> Backtest:
    return backtest(writer.store, settings, writer.experiment, writer.candidate, period, **more)


def tables(store: Store) -> dict[str, int]:
    names = ("detector_state", "alerts", "alert_baselines", "drift_results", "alert_notices")
    return {name: store.query(f"SELECT count() FROM {name}").rows[0][0] for name in names}


def test_backtest_says_what_a_live_runner_fired_and_writes_nothing(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(writer)
    before = tables(writer.store)
    found = replayed(writer)
    assert tables(writer.store) == before
    # The live one reads other chunks: what comes of it must not depend on them.
    monkeypatch.setattr(source, "MAX_PAIRS", 70)
    events = live(writer)
    fired = [alert for alert in events if alert.state == "firing"]
    assert len(fired) > 2
    assert essence([one.alert for one in found.found]) == essence(fired)
    resolved = {alert.alert_id: alert.resolved_at for alert in events if alert.state == "resolved"}
    assert resolved
    assert {one.alert.alert_id: one.resolved_at for one in found.found if one.resolved_at} == resolved
    assert found.records == 600
    # Afterwards too, with the baselines that the live one stored after the period began.
    assert essence([one.alert for one in replayed(writer).found]) == essence(fired)


def test_small_chunks_fire_the_same(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    history(writer)
    whole = replayed(writer)
    monkeypatch.setattr(source, "MAX_PAIRS", 60)
    counts: list[int] = []
    small = replayed(writer, on_progress=counts.append)
    assert small.found == whole.found
    assert len(counts) > 10
    assert counts == sorted(counts)
    assert counts[-1] == 600


def test_period_ends_where_it_was_asked_to(writer: Writer) -> None:
    quiet_until = history(writer)
    found = replayed(writer, period=Period(START_MS, START_MS + quiet_until * 1000))
    # The record at that very second is outside.
    assert found.records == 159
    assert found.found == []
    assert {one.metric for one in found.baselines if one.is_complete} == {
        "regression_rate", "unscored_rate", "skipped_rate", "failed_rate",
    }  # fmt: skip


def test_a_later_start_uses_the_baselines_that_were_complete_then(writer: Writer) -> None:
    quiet_until = history(writer)
    live(writer)
    late = Period(START_MS + quiet_until * 1000, WHOLE.until_ms)
    then = replayed(writer, period=late)
    rate = next(one for one in then.baselines if one.metric == "regression_rate")
    assert rate.pairs == 60
    assert rate.to_at is not None
    assert rate.to_at <= START + timedelta(seconds=quiet_until)
    assert any(one.alert.metric == "regression_rate" for one in then.found)
    # Learned from the bad part, the same faults are what is tolerated.
    new = replayed(writer, period=late, baselines="new")
    assert not any(one.alert.metric == "regression_rate" for one in new.found)


def test_a_baseline_that_was_reset_is_not_taken_from_before_the_reset(writer: Writer) -> None:
    late = Period(START_MS + history(writer) * 1000, WHOLE.until_ms)
    live(writer)
    before = replayed(writer, period=late, baselines="now")
    (opened,) = learn_anew(writer.store, writer.experiment, writer.candidate, [BY_NAME["regression_rate"]])

    def version(run: Backtest, metric: str) -> int:
        return next(one.version for one in run.baselines if one.metric == metric)

    now = replayed(writer, period=late, baselines="now")
    assert any(one.alert.metric == "regression_rate" for one in before.found)
    # Learned from the bad part: the same faults are what is tolerated.
    assert not any(one.alert.metric == "regression_rate" for one in now.found)
    assert version(now, "regression_rate") > opened.version
    assert version(now, "failed_rate") == version(before, "failed_rate")
    # The reset came after this time began, and then before it.
    then = replayed(writer, period=late)
    assert version(then, "regression_rate") < opened.version
    writer.store.command(
        "INSERT INTO alert_baselines SELECT * REPLACE(version + 1 AS version,"
        f" toDateTime64('{START:%Y-%m-%d %H:%M:%S}', 3, 'UTC') AS recorded_at)"
        f" FROM alert_baselines FINAL WHERE experiment = '{writer.experiment}' AND is_open"
    )
    assert version(replayed(writer, period=late), "regression_rate") > opened.version


def test_settings_are_tried_without_being_set(writer: Writer) -> None:
    history(writer)
    looser = msgspec.structs.replace(SETTINGS, tolerated_regression_rate=0.45, tolerated_excess_rate=0.49)
    assert len(replayed(writer, looser).found) < len(replayed(writer).found)


def test_report_names_alerts_baselines_and_the_quiet(writer: Writer) -> None:
    history(writer)
    run = replayed(writer)
    text = told(run)
    assert f"experiment {writer.experiment}, candidate q4: {START:%Y-%m-%d} 03:00:00" in text
    assert "alerts would have fired, in" in text
    assert "regression_rate, resolved after" in text
    assert "regression_rate: learned from 60 pairs of" in text
    assert "quiet ones that came closest to their threshold:" in text
    quiet = told(replayed(writer, period=Period(START_MS, START_MS + 60_000)))
    assert "nothing would have fired" in quiet
    empty = told(replayed(writer, period=Period(START_MS - 7_200_000, START_MS - 3_600_000)))
    assert "no series moved: no settled pairs in that time" in empty


def test_spans_have_two_units_at_most() -> None:
    assert [span_text(s) for s in (0, 59, 60, 3_661, 90_061, 86_400)] == [
        "0 s", "59 s", "1 min", "1 h 1 min", "1 d 1 h", "1 d",
    ]  # fmt: skip


def command(writer: Writer, *options: str) -> Any:
    folder = writer.store.where.removeprefix("chdb://")
    since = START.isoformat()
    return CliRunner().invoke(
        cli,
        [
            "alerts",
            "backtest",
            "--dir",
            folder,
            "--experiment",
            writer.experiment,
            "--since",
            since,
            *options,
        ],
        standalone_mode=False,
    )


def test_command_prints_json_and_takes_settings(writer: Writer) -> None:
    history(writer)
    tried = ("--set", "baseline_min_pairs=60", "--set", "mean_pairs_between_false_alarms=20")
    result = command(writer, "--json", *tried)
    assert result.exception is None
    document = json.loads(result.stdout)
    assert document["settings"]["baseline_min_pairs"] == 60
    assert [one["alert"]["alert_id"] for one in document["found"]] == [
        one.alert.alert_id for one in replayed(writer).found
    ]
    text = command(writer, *tried).stdout
    assert "alerts would have fired" in text
    quiet = command(writer, "--set", "tolerated_excess_rate=0.49").stdout
    assert "nothing would have fired" in quiet
    assert "baselines:\n  none complete" in quiet


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "nothing=1"), "--set nothing=1: write NAME=VALUE, with NAME of "),
        (("--set", "interval_s"), "--set interval_s: write NAME=VALUE"),
        (
            ("--set", "tolerated_regression_rate=2"),
            "--set tolerated_regression_rate=2: Expected `float` < 0.5",
        ),
        (("--until", "2000-01-01"), "--since must be before --until"),
    ],
)
def test_wrong_options_are_one_line(writer: Writer, options: tuple[str, ...], message: str) -> None:
    result = command(writer, *options)
    assert message in str(result.exception)


def test_unknown_candidate_is_named(writer: Writer) -> None:
    history(writer)
    result = command(writer, "--candidate", "q9")
    assert isinstance(result.exception, FatalError)
    assert f"experiment {writer.experiment} has no candidate q9; it has q4" in str(result.exception)


def test_unknown_candidate_is_named_beside_a_settings_file_too(store: Store) -> None:
    named = ExperimentSettings(name="night", reference="bf16", candidates=["q4", "q5"], models={})
    assert _which(store, None, (), named) == ("night", ("q4", "q5"))
    assert _which(store, "night", ("q5",), named) == ("night", ("q5",))
    with pytest.raises(FatalError, match="experiment night has no candidate q9; it has q4, q5"):
        _which(store, None, ("q9",), named)
