"""The runner on the real engine, with planted golden runs, pairs and pages."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec
import pytest

from compare.alerts.notice import Delivery
from compare.controls import Scope, order
from compare.operations.rollback_metrics import RollbackCollector
from compare.rollback.decisions import Decision, decision_id, read_decisions, read_evaluations
from compare.rollback.faulty import read_counts
from compare.rollback.runner import RollbackRunner
from compare.rollback.tell import key_of, told_of
from compare.store import Store
from ingest.served import Served
from ingest.settings_rollback import RollbackSettings
from tests.compare.rollback.conftest import Planter
from tests.compare.rollback.pages import Pages


class Sink:
    """Remembers what it was told; `fails` says how the next tellings go."""

    name = "webhook:pager"

    def __init__(self) -> None:
        self.told: list[str] = []
        self.kept: list[list[str]] = []
        self.fails: list[Delivery] = []
        self.dies = False

    def tell(self, decision: Decision) -> Delivery:
        self.told.append(key_of(decision))
        if self.dies:
            raise KeyboardInterrupt
        return self.fails.pop(0) if self.fails else Delivery(1)

    def keep_alive(self, calls: Sequence[Decision]) -> Delivery | None:
        self.kept.append([one.decision_id for one in calls])
        return None


class Clock:
    """Each evaluation is a minute after the one before, from now on."""

    def __init__(self) -> None:
        self._start = datetime.now(UTC)
        self._minutes = count()

    def __call__(self) -> datetime:
        return self._start + timedelta(minutes=next(self._minutes))


def runner(planter: Planter, *sinks: Sink, **values: Any) -> RollbackRunner:
    return RollbackRunner(planter.store, planter.settings(**values), sinks)


def changes(planter: Planter) -> list[str]:
    return [one.event for one in reversed(read_decisions(planter.store, planter.experiment))]


def states(planter: Planter) -> tuple[str, str, str]:
    (one,) = read_evaluations(planter.store, planter.experiment)
    return one.condition_a, one.condition_b, one.condition_c


def test_a_and_b_call_for_a_rollback_once_they_hold(planter: Planter) -> None:
    sink, clock = Sink(), Clock()
    run = runner(planter, sink).run_once
    run(clock)
    assert states(planter) == ("off", "unknown", "off")
    planter.golden(0.7, ago_s=120)
    planter.golden(0.75, ago_s=60)
    planter.pairs(90)
    run(clock)
    assert states(planter) == ("firing", "quiet", "off")
    planter.pairs(30, verdict="candidate_worse")
    assert [one.event for one in run(clock)] == ["conditions"]
    assert sink.told == []
    (called,) = run(clock)
    assert called.event == "called"
    assert called.decision_id == decision_id(planter.experiment, "q4", called.decided_at)
    assert sink.told == [f"{called.decision_id}:1"]
    assert called.summary == (
        "A firing: golden set core: mean scores of the last 2 golden runs: 0.700, 0.750; each under 0.8; "
        "B firing: 30 of 120 requests faulty on the candidate alone in 10 min (25.0%, at least 18.6%), "
        "allowed 5.0%"
    )
    assert run(clock) == []
    assert changes(planter) == ["conditions", "conditions", "conditions", "called"]
    evidence = called.conditions.b.evidence
    assert (evidence["pairs"], evidence["faulty"], evidence["families"]) == (120, 30, {"json": 30})
    assert len(evidence["examples"]) == 5 and evidence["examples"][0].startswith("t/0/")


def test_neither_a_nor_b_alone_calls(planter: Planter) -> None:
    clock, run = Clock(), runner(planter).run_once
    planter.pairs(100, verdict="candidate_worse")
    for _ in range(3):
        run(clock)
    assert states(planter) == ("off", "firing", "off")
    (last,) = read_evaluations(planter.store, planter.experiment)
    assert (last.says, last.is_called) == ("no", False)
    planter.golden(0.5, ago_s=4 * 3600)
    run(clock)
    assert states(planter) == ("unknown", "firing", "off")
    assert read_evaluations(planter.store, planter.experiment)[0].says == "unknown"


def test_c_alone_calls_and_ends_when_it_is_quiet(planter: Planter) -> None:
    sink, clock = Sink(), Clock()
    with Pages() as pages:
        waiting = pages.gauge("waiting")
        rules = [{"name": "queue", "metrics": ["waiting"], "threshold": 5.0}]
        watched = runner(
            planter, sink, pages=[{"endpoint": "q4", "url": f"{pages.url}/metrics"}], rules=rules,
            url=pages.url, health="/health",
        )  # fmt: skip
        waiting.set(6)
        watched.run_once(clock)
        (called,) = watched.run_once(clock)
        assert (called.event, called.summary) == ("called", "C firing: queue: waiting: 6 > 5")
        # A page that is away neither holds the call nor ends it.
        pages.status = 503
        for _ in range(3):
            watched.run_once(clock)
        assert states(planter)[2] == "unknown"
        pages.status = 200
        waiting.set(5)
        watched.run_once(clock)
        (cleared,) = watched.run_once(clock)
    assert (cleared.event, cleared.decision_id) == ("cleared", called.decision_id)
    assert sink.told == [f"{called.decision_id}:1", f"{called.decision_id}:2"]
    assert sink.kept and {tuple(one) for one in sink.kept} == {(called.decision_id,)}
    assert changes(planter) == ["conditions", "called", "conditions", "conditions", "cleared"]


def test_a_candidate_that_is_paused_is_not_judged_by_its_engine(planter: Planter) -> None:
    with Pages() as pages:
        pages.health = 503
        order(planter.store, "pause", Scope(planter.experiment, "q4"), ordered_by="me@here", reason="update")
        runner(planter, url=pages.url, health="/health").run_once()
        (last,) = read_evaluations(planter.store, planter.experiment)
        assert last.condition_c == "unknown"
        assert "paused by command" in last.conditions.c.summary and "update" in last.conditions.c.summary
        order(planter.store, "resume", Scope(planter.experiment, "q4"), ordered_by="me@here")


def test_a_restart_goes_on_where_the_last_run_was(planter: Planter) -> None:
    sink, clock = Sink(), Clock()
    planter.golden(0.7, ago_s=120)
    planter.golden(0.7)
    planter.pairs(100, verdict="candidate_worse")
    runner(planter, sink).run_once(clock)
    runner(planter, sink).run_once(clock)
    for _ in range(3):
        runner(planter, sink).run_once(clock)
    assert changes(planter) == ["conditions", "called"]
    assert len(sink.told) == 1


def test_killed_between_decision_and_state_it_is_decided_once(
    planter: Planter, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, clock = Sink(), Clock()
    planter.golden(0.7, ago_s=120)
    planter.golden(0.7)
    planter.pairs(100, verdict="candidate_worse")
    runner(planter, sink).run_once(clock)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("compare.rollback.runner.write_evaluation", killed)
        with pytest.raises(KeyboardInterrupt):
            runner(planter, sink).run_once(clock)
    assert sink.told == []
    assert runner(planter, sink).run_once(clock) == []
    assert changes(planter) == ["conditions", "called"]
    assert len(sink.told) == 1
    (last,) = read_evaluations(planter.store, planter.experiment)
    assert last.is_called and last.decision_id == sink.told[0].removesuffix(":1")


def test_killed_between_telling_and_its_note_the_key_is_the_same(planter: Planter) -> None:
    sink, clock = Sink(), Clock()
    planter.golden(0.7, ago_s=120)
    planter.golden(0.7)
    planter.pairs(100, verdict="candidate_worse")
    runner(planter, sink).run_once(clock)
    sink.dies = True
    with pytest.raises(KeyboardInterrupt):
        runner(planter, sink).run_once(clock)
    sink.dies = False
    for _ in range(3):
        runner(planter, sink).run_once(clock)
    assert len(sink.told) == 2 and len(set(sink.told)) == 1


def test_a_sink_that_is_down_or_refuses_is_told_later_and_in_order(planter: Planter) -> None:
    sink, other, clock = Sink(), Sink(), Clock()
    other.name = "command:page"
    sink.fails = [Delivery(3, "host: refused", True), Delivery(1, "host: status 400"), Delivery(1)]
    planter.golden(0.7, ago_s=120)
    planter.golden(0.7)
    planter.pairs(100, verdict="candidate_worse")
    for _ in range(5):
        runner(planter, sink, other).run_once(clock)
    (call,) = [one for one in read_decisions(planter.store, planter.experiment) if one.event == "called"]
    assert sink.told == [f"{call.decision_id}:1"] * 3
    assert other.told == [f"{call.decision_id}:1"]
    noted = {
        sink: (done, attempts) for _, sink, done, attempts, *_ in told_of(planter.store, call.decision_id)
    }
    assert noted == {"webhook:pager": (True, 2), "command:page": (True, 1)}


def test_one_of_two_runners_acts(planter: Planter, store: Store) -> None:
    first, second = runner(planter), runner(planter)
    first.start()
    try:
        while not first.read_last():
            time.sleep(0.02)
        assert second.run_once() == [] and second.read_last() == {}
        assert len(read_decisions(store, planter.experiment)) == 1
        families = {one.name: one for one in RollbackCollector(first.read_last).collect()}
        assert [sample.value for sample in families["gnomon_rollback_called"].samples] == [0.0]
        on = {
            (sample.labels["condition"], sample.labels["state"])
            for sample in families["gnomon_rollback_condition"].samples
            if sample.value == 1.0
        }
        assert on == {("A", "off"), ("B", "unknown"), ("C", "off")}
    finally:
        first.stop()
    assert first.read_last() == {}
    assert second.run_once() == []
    # The second one took over and went on counting.
    assert read_evaluations(store, planter.experiment)[0].clear == 2


def test_what_counts_for_b(planter: Planter) -> None:
    settings = RollbackSettings()

    def counts() -> dict[str, Any]:
        found = read_counts(planter.store, planter.experiment, "q4", settings, datetime.now(UTC))
        return {
            name: value
            for name, value in msgspec.structs.asdict(found).items()
            if name not in ("examples", "families") and value
        }

    planter.pairs(10)
    planter.pairs(3, verdict="candidate_worse")
    planter.pairs(2, verdict="candidate_error", failure="http_error")
    planter.pairs(4, verdict="both_faulty")
    assert counts() == {"pairs": 19, "faulty": 5, "both_faulty": 4}
    # One request that a client sends again and again counts once.
    planter.pairs(5, verdict="candidate_worse", request_hash="again")
    assert counts() == {"pairs": 20, "faulty": 6, "both_faulty": 4}
    # Neither what cannot be compared, nor what is older than the window, nor another candidate's.
    planter.pairs(1, verdict="unscored")
    planter.pairs(1, verdict="candidate_worse", mode="mirrored")
    planter.pairs(1, verdict="candidate_worse", tags=["history_faulty"])
    planter.pairs(1, verdict="candidate_worse", ago_s=601)
    planter.pairs(1, verdict="candidate_worse", candidate="q5")
    assert counts() == {"pairs": 20, "faulty": 6, "both_faulty": 4}


def test_an_outage_does_not_count_for_b(planter: Planter) -> None:
    settings = RollbackSettings()
    planter.pairs(30)
    planter.pairs(8, verdict="candidate_error", failure="cut_stream", ago_s=300)
    planter.pairs(3, verdict="candidate_error", failure="http_error", ago_s=300)
    before = read_counts(planter.store, planter.experiment, "q4", settings, datetime.now(UTC))
    assert (before.pairs, before.faulty, before.cut_by_outage) == (41, 11, 0)
    # Streams cut by the outage of the reference would tell of the reference.
    planter.away("fp16", ago_s=290)
    assert read_counts(planter.store, planter.experiment, "q4", settings, datetime.now(UTC)) == before
    for _ in range(4):
        planter.away(ago_s=290)
    after = read_counts(planter.store, planter.experiment, "q4", settings, datetime.now(UTC))
    assert (after.pairs, after.faulty, after.cut_by_outage, after.away) == (33, 3, 8, 4)


def test_another_build_begins_condition_a_anew(planter: Planter) -> None:
    planter.golden(0.7, ago_s=120)
    planter.golden(0.7, ago_s=60, served=Served(model="m-q5"))
    runner(planter).run_once()
    assert states(planter)[0] == "quiet"
