"""By the clock: a run is due once, whoever is there, and its alert follows."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from compare.golden.case import GoldenCase
from compare.golden.run import Limits
from compare.golden.run_log import read_runs, write_run
from compare.golden.schedule import GoldenSchedule, alone
from compare.golden.session import Outcome
from compare.golden.sets import write_cases
from compare.operations.golden_metrics import GoldenCollector
from compare.store import Store
from ingest.errors import FatalError, RetryError
from ingest.settings import Settings
from tests.compare.golden.rig import case, result, run

TABLES = ("golden_cases", "golden_runs", "golden_results", "golden_baselines", "alerts", "token_use")


@pytest.fixture
def store(migrated_store: Store) -> Iterator[Store]:
    for table in TABLES:
        migrated_store.command(f"TRUNCATE TABLE {table}")
    yield migrated_store


class Fake:
    """Stores a run with the next of `means` instead of asking anybody; waits for `gate` first."""

    def __init__(self, store: Store, *means: float) -> None:
        self._store = store
        self._means = list(means)
        self.now = datetime.now(UTC).replace(microsecond=0)
        self.calls: list[tuple[str, int, str]] = []
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, set_name: str, cases: Sequence[GoldenCase], endpoint: str, limits: Limits) -> Outcome:
        self.calls.append((set_name, len(cases), endpoint))
        self.entered.set()
        assert self.gate.wait(60)
        made = msgspec.structs.replace(
            run(0, self._means.pop(0)), run_id=f"r{len(self.calls)}", endpoint_name=endpoint,
            started_at=self.now, finished_at=self.now + timedelta(seconds=5),
        )  # fmt: skip
        write_run(self._store, made, [result()], None)
        return Outcome(made, (result(),), None)


def schedule(store: Store, settings: Settings, fake: Fake) -> GoldenSchedule:
    return GoldenSchedule(store, settings, fake, now=lambda: fake.now)


def test_a_run_is_due_an_interval_after_the_last_began(store: Store, settings: Settings) -> None:
    write_cases(store, "s", [case("a"), case("b")])
    fake = Fake(store, 0.9, 0.9)
    one = schedule(store, settings, fake)
    assert len(one.run_once()) == 1
    fake.now += timedelta(seconds=3599)
    assert one.run_once() == []
    # Another process that starts now looks at the same runs.
    assert schedule(store, settings, fake).run_once() == []
    fake.now += timedelta(seconds=1)
    assert len(schedule(store, settings, fake).run_once()) == 1
    assert fake.calls == [("s", 2, "cand")] * 2


def test_runs_by_command_do_not_count(store: Store, settings: Settings) -> None:
    write_cases(store, "s", [case("a")])
    fake = Fake(store, 0.9)
    began = fake.now - timedelta(seconds=1)
    by_hand = msgspec.structs.replace(run(0), started_by="command", started_at=began, finished_at=began)
    write_run(store, by_hand, [], None)
    assert len(schedule(store, settings, fake).run_once()) == 1


def test_each_endpoint_has_its_own_runs(store: Store, settings: Settings) -> None:
    golden = msgspec.structs.replace(settings.golden, endpoints=["cand", "ref"])
    settings = msgspec.structs.replace(settings, golden=golden)
    write_cases(store, "s", [case("a")])
    fake = Fake(store, 0.5, 0.9)
    assert len(schedule(store, settings, fake).run_once()) == 2
    assert store.query("SELECT candidate, state FROM alerts_v1").rows == [("cand", "firing")]


def test_of_two_processes_one_runs_it(store: Store, settings: Settings) -> None:
    write_cases(store, "s", [case("a")])
    fake, other = Fake(store, 0.9), Fake(store)
    fake.gate.clear()
    with store.another() as mine, store.another() as theirs:
        first = threading.Thread(target=schedule(mine, settings, fake).run_once)
        first.start()
        assert fake.entered.wait(60)
        late = schedule(theirs, settings, other)
        assert late.run_once() == []
        fake.gate.set()
        first.join(60)
        assert late.run_once() == []
    assert (len(fake.calls), other.calls) == (1, [])
    assert len(read_runs(store)) == 1


def test_the_lease_is_given_back_when_a_run_fails(store: Store, settings: Settings) -> None:
    write_cases(store, "s", [case("a")])

    def refuse(set_name: str, cases: Sequence[GoldenCase], endpoint: str, limits: Limits) -> Outcome:
        raise RetryError("the service ends")

    with pytest.raises(RetryError):
        GoldenSchedule(store, settings, refuse).run_once()
    assert len(schedule(store, settings, Fake(store, 0.9)).run_once()) == 1


def test_a_low_mean_warns_and_two_very_low_ones_are_critical(store: Store, settings: Settings) -> None:
    write_cases(store, "s", [case("a")])
    fake = Fake(store, 0.84, 0.7, 0.7, 0.9)
    one = schedule(store, settings, fake)
    seen = []
    for _ in range(4):
        one.run_once()
        seen += store.query("SELECT state, severity, version FROM alerts_v1").rows
        fake.now += timedelta(hours=1)
    assert seen == [
        ("firing", "warning", 1),
        ("firing", "warning", 1),
        ("firing", "critical", 2),
        ("resolved", "critical", 3),
    ]


def test_the_last_whole_run_is_told_to_prometheus(store: Store, settings: Settings) -> None:
    write_cases(store, "s", [case("a")])
    fake = Fake(store, 0.75)
    one, other = schedule(store, settings, fake), schedule(store, settings, fake)
    registry = CollectorRegistry()
    registry.register(GoldenCollector(other.read_latest))
    labels = {"set": "s", "endpoint": "cand"}
    assert registry.get_sample_value("gnomon_golden_mean_score", labels) is None
    one.run_once()
    assert [run.totals.mean_score for run in one.read_latest()] == [0.75]
    # The process that did not run it tells the same.
    other.run_once()
    assert registry.get_sample_value("gnomon_golden_mean_score", labels) == 0.75
    assert registry.get_sample_value("gnomon_golden_passed", labels) == 1.0
    ended = registry.get_sample_value("gnomon_golden_last_run_timestamp_seconds", labels)
    assert ended == (fake.now + timedelta(seconds=5)).timestamp()


def test_a_set_without_cases_is_said_once(
    store: Store, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    fake = Fake(store)
    one = schedule(store, settings, fake)
    with caplog.at_level(logging.WARNING):
        assert one.run_once() == one.run_once() == []
    assert caplog.messages == ["golden set s has no cases: nothing is run"]


def test_without_a_set_nothing_is_read(store: Store, settings: Settings) -> None:
    golden = msgspec.structs.replace(settings.golden, set=None)
    one = schedule(store, msgspec.structs.replace(settings, golden=golden), Fake(store))
    one.start()
    assert one.run_once() == []
    one.stop()


def test_an_endpoint_of_no_experiment_is_refused_at_the_start(store: Store, settings: Settings) -> None:
    golden = msgspec.structs.replace(settings.golden, endpoints=["x"])
    with pytest.raises(FatalError, match='endpoint "x" is not of experiment e'):
        schedule(store, msgspec.structs.replace(settings, golden=golden), Fake(store))


def test_a_watcher_runs_it_with_a_replayer_of_its_own(store: Store, settings: Settings) -> None:
    write_cases(store, "s", [case("a")])
    with store.another() as own:
        (outcome,) = GoldenSchedule(own, settings, alone(own, settings)).run_once()
    assert (outcome.run.started_by, outcome.run.status) == ("schedule", "failed")
    rows = store.query("SELECT state, category, statistic FROM alerts_v1").rows
    assert rows == [("firing", "golden", outcome.run.totals.mean_score)]
