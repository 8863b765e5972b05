"""The service: opens every part in order, runs the pipeline, closes in the reverse order."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Protocol

import msgspec

from compare.alerts.runner import AlertRunner
from compare.alerts.scheduler import Ticker
from compare.already_stored import AlreadyStored
from compare.compare_process import CompareProcess
from compare.compare_stage import Compare
from compare.counters import Counters
from compare.fence import OwnedInserts
from compare.golden.in_service import golden_runs
from compare.group_check import group_warnings
from compare.intake import REMEMBERED_IDS, Intake
from compare.isolation import IsolationRunner
from compare.large_blocks import give_back_large_blocks
from compare.ledger import Ledger
from compare.near_tie import near_tie_nats
from compare.operations.alert_metrics import AlertCollector
from compare.operations.metrics import ServiceMetrics
from compare.operations.observers import Observer
from compare.operations.pages import serving
from compare.operations.record_log import RecordLog
from compare.operations.rollback_metrics import RollbackCollector
from compare.operations.state import ServiceState
from compare.operations.tracing import tracing
from compare.pipeline import Pipeline
from compare.purged import PurgedPositions, read_purged
from compare.read_back import ReadBack
from compare.recent_ids import RecentIds, on_loop
from compare.redacted_logs import redacted_logs
from compare.register import register_experiment
from compare.rollback.runner import RollbackRunner
from compare.rollback.sinks import tellers_of
from compare.rollups.runner import RollupRunner
from compare.served_watch import ServedWatch
from compare.ship.schedule import VerdictSchedule
from compare.stop_signals import StopSignals
from compare.store import migrate
from compare.store.client import Role, Store, open_store
from compare.sweeper import Sweeper
from compare.waiting import waiting_for
from compare.writer import Writer
from ingest.dead_letters import DeadLetterTopic
from ingest.kafka_source import KafkaSource
from ingest.redact import Redactor, redactor_of
from ingest.replay import Replayer
from ingest.settings import Settings, StoreSettings

STARTUP_TIMEOUT_S = 30.0
"""How long Kafka or the store may be away at the start. Later they are waited for as long as it takes."""
_SWEEP_INTERVAL_S = 3600.0

_log = logging.getLogger(__name__)


class RunReport(msgspec.Struct, frozen=True):
    """What became of the records; see `Counters`. `seconds` is the pipeline's own time."""

    consumed: int
    compared: int
    pairs: int
    skipped: dict[str, int]
    failed: dict[str, int]
    dead_lettered: int
    seconds: float
    already_stored: int = 0


def run_service(
    settings: Settings,
    *,
    stop_when: Callable[[Counters], bool] | None = None,
    on_progress: Callable[[Counters], None] | None = None,
    store: Store | None = None,
    startup_timeout_s: float = STARTUP_TIMEOUT_S,
    signals: StopSignals | None = None,
) -> RunReport:
    """Consume, replay, compare, store, until SIGTERM or SIGINT, or until `stop_when` is true.

    `stop_when` and `on_progress` are called on the event loop, at least once a second. `store` is
    used and left open; without it the store of the settings is opened and closed here. With
    `stop_when`, alerts, rollups, what was served and verdicts are brought up to date once more at the end.

    Raises FatalError, one clear line, if the job cannot begin or go on: Kafka or the store away for
    `startup_timeout_s` at the start, a wrong password, a missing topic.
    """
    # kafka-python reports every failed attempt at level ERROR; the source says it once a minute.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    give_back_large_blocks()
    redactor = redactor_of(settings.redaction)
    with ExitStack() as stack:
        if signals is None:
            signals = stack.enter_context(StopSignals())
        stack.enter_context(redacted_logs(redactor))

        def opened() -> Store:
            return stack.enter_context(_open(settings.store, "any", startup_timeout_s))

        if store is None:
            store = opened()
        waiting_for(partial(_prepare, store, settings), startup_timeout_s)
        # It loads its model while the rest is opened, and while Kafka joins the group.
        compare = stack.enter_context(CompareProcess(_with_near_tie(store, settings)))
        purged = waiting_for(partial(read_purged, store), startup_timeout_s)
        experiment = settings.experiment
        # A handle each: calls on one wait for each other, and no insert shall wait for the alerts.
        alerts = _alerts(opened, settings) if settings.alerts.enabled else None
        rollback = None
        if settings.alerts.enabled and settings.rollback.enabled:
            rollback = RollbackRunner(opened(), settings, tellers_of(settings))
        runners: tuple[_Runner, ...] = (
            *([] if alerts is None else [alerts]),
            *([] if rollback is None else [rollback]),
            RollupRunner(opened(), settings.store),
            ServedWatch(opened(), settings),
            VerdictSchedule(
                opened(),
                settings.verdict,
                experiment.name,
                experiment.candidates,
                cluster=settings.store.cluster,
            ),
        )
        for runner in runners:
            runner.start()
            stack.callback(runner.stop)
        read_store = opened()
        sweeper = Sweeper(opened(), experiment.name, cluster=settings.store.cluster)
        sweeping = Ticker(sweeper.sweep, _SWEEP_INTERVAL_S, "sweeper")
        sweeping.start()
        stack.callback(sweeping.stop)
        stack.callback(sweeper.stop)
        began = time.monotonic()
        service = _Service(
            settings,
            store,
            read_store,
            compare,
            redactor,
            purged,
            signals,
            startup_timeout_s,
            alerts,
            rollback,
        )
        counters = asyncio.run(service.serve(stop_when, on_progress))
        seconds = time.monotonic() - began
        if stop_when is not None:
            for runner in runners:
                runner.stop()
                runner.run_once()
    return RunReport(
        consumed=counters.consumed,
        compared=counters.compared,
        pairs=counters.pairs,
        skipped=dict(counters.skipped),
        failed=dict(counters.failed),
        dead_lettered=counters.dead_lettered,
        seconds=seconds,
        already_stored=counters.already_stored,
    )


class _Runner(Protocol):
    """Does its work now and then on a thread of its own."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def run_once(self) -> object: ...


class _Service(msgspec.Struct):
    """What the pipeline is made of. `read_store` is for reading back, beside the inserts into `store`."""

    settings: Settings
    store: Store
    read_store: Store
    compare: Compare
    redactor: Redactor | None
    purged: PurgedPositions
    signals: StopSignals
    startup_timeout_s: float
    alerts: AlertRunner | None
    rollback: RollbackRunner | None

    async def serve(
        self,
        stop_when: Callable[[Counters], bool] | None,
        on_progress: Callable[[Counters], None] | None,
    ) -> Counters:
        """Run the pipeline to its end."""
        settings, redactor, group = self.settings, self.redactor, self.settings.kafka.group
        experiment = settings.experiment
        ledger = Ledger(group)
        stop_writing = threading.Event()
        inserts = OwnedInserts(self.store, ledger, stop_writing, lambda: source.has_lease())
        intake = Intake(
            experiment, purged=self.purged, sampling=settings.sampling, delivery=settings.delivery
        )
        read_back = self._read_back(inserts, intake)
        source = KafkaSource(
            settings.kafka,
            settings.delivery,
            ledger,
            before=read_back,
            startup_timeout_s=self.startup_timeout_s,
            experiment=experiment.name,
        )
        replayer = Replayer(
            experiment, settings.endpoints, keeps_answers=settings.store.keep_reference_answers
        )
        isolation_store = await asyncio.to_thread(waiting_for, self.store.another, self.startup_timeout_s)
        isolation = IsolationRunner(
            isolation_store,
            experiment.name,
            replayer.endpoints,
            release=lambda partition: pipeline.release(partition),
        )
        writer = Writer(inserts, stop_writing, group=group, redactor=redactor)
        observers: list[Observer] = []
        pipeline = Pipeline(
            experiment=experiment.name,
            source=source,
            ledger=ledger,
            intake=intake,
            replayer=replayer,
            compare=self.compare,
            writer=writer,
            dead_letters=DeadLetterTopic(settings.kafka, redactor),
            delivery=settings.delivery,
            stop_writing=stop_writing,
            stored=AlreadyStored(read_back, experiment.candidates, redactor.keyed if redactor else None),
            owned=inserts.owned,
            on_progress=on_progress,
            observers=observers,
        )
        state = ServiceState(
            experiment.name, pipeline, source, ledger, replayer.endpoints, lambda: writer.away_s
        )
        metrics = ServiceMetrics(state)
        if self.alerts is not None:
            metrics.registry.register(AlertCollector(self.alerts.read_status))
        if self.rollback is not None:
            metrics.registry.register(RollbackCollector(self.rollback.read_last))
        observers += [metrics, RecordLog(experiment.name, settings.kafka.topic)]
        try:
            await asyncio.to_thread(waiting_for, isolation.read, self.startup_timeout_s)
            with (
                self.signals.stopping(pipeline.stop),
                tracing(settings.operations, experiment.name, settings.kafka.topic) as tracers,
            ):
                observers += tracers
                another = partial(waiting_for, self.store.another, self.startup_timeout_s)
                async with (
                    isolation.running(),
                    serving(settings.operations, state, metrics),
                    golden_runs(settings, another, replayer, pipeline, redactor, metrics.registry),
                ):
                    return await pipeline.run(stop_when)
        finally:
            await asyncio.to_thread(isolation_store.close)
            await asyncio.to_thread(read_back.close)

    def _read_back(self, inserts: OwnedInserts, intake: Intake) -> ReadBack:
        store, experiment, cluster = self.read_store, self.settings.experiment, self.settings.store.cluster
        learn = on_loop(asyncio.get_running_loop(), intake.remember)
        return ReadBack(
            store,
            experiment=experiment.name,
            candidates=experiment.candidates,
            group=self.settings.kafka.group,
            inserts=inserts,
            recent_ids=RecentIds(store, experiment.name, learn, limit=REMEMBERED_IDS),
            sweeper=Sweeper(store, experiment.name, cluster=cluster),
            cluster=cluster,
        )


def _alerts(opened: Callable[[], Store], settings: Settings) -> AlertRunner:
    experiment = settings.experiment
    return AlertRunner(
        opened(),
        settings.alerts,
        experiment.name,
        experiment.candidates,
        notify=settings.notify,
        cluster=settings.store.cluster,
    )


def _with_near_tie(store: Store, settings: Settings) -> Settings:
    limit = near_tie_nats(store, settings.experiment.name, settings.compare.near_tie_nats)
    return msgspec.structs.replace(
        settings, compare=msgspec.structs.replace(settings.compare, near_tie_nats=limit)
    )


def _prepare(store: Store, settings: Settings) -> None:
    migrate.apply(store, settings.store)
    for warning in group_warnings(store, settings.experiment.name, settings.kafka.group):
        _log.warning("%s", warning)
    register_experiment(store, settings)


def _open(settings: StoreSettings, role: Role, timeout_s: float) -> Store:
    return waiting_for(partial(open_store, settings, role=role), timeout_s)
