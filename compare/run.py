"""The service: opens every part in order, runs the pipeline, closes in the reverse order."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

import msgspec

from compare.alerts.runner import AlertRunner
from compare.compare_process import CompareProcess
from compare.compare_stage import Compare
from compare.counters import Counters
from compare.intake import Intake
from compare.ledger import Ledger
from compare.near_tie import near_tie_nats
from compare.pipeline import Pipeline
from compare.purged import PurgedPositions, read_purged
from compare.redacted_logs import redacted_logs
from compare.register import register_experiment
from compare.rollups.runner import RollupRunner
from compare.store import migrate
from compare.store.client import Role, Store, open_store
from compare.writer import Writer
from ingest.dead_letters import DeadLetterTopic
from ingest.errors import FatalError, RetryError
from ingest.kafka_source import KafkaSource
from ingest.redact import Redactor, redactor_of
from ingest.replay import Replayer
from ingest.settings import Settings, StoreSettings

STARTUP_TIMEOUT_S = 30.0
"""How long Kafka or the store may be away at the start. Later they are waited for as long as it takes."""
_LOOK_AGAIN_S = 1.0

_log = logging.getLogger(__name__)

T = TypeVar("T")


class RunReport(msgspec.Struct, frozen=True):
    """What became of the records; see `Counters`. `seconds` is the pipeline's own time."""

    consumed: int
    compared: int
    pairs: int
    skipped: dict[str, int]
    failed: dict[str, int]
    dead_lettered: int
    seconds: float


def run_service(
    settings: Settings,
    *,
    stop_when: Callable[[Counters], bool] | None = None,
    on_progress: Callable[[Counters], None] | None = None,
    store: Store | None = None,
    startup_timeout_s: float = STARTUP_TIMEOUT_S,
) -> RunReport:
    """Consume, replay, compare, store, until SIGTERM or SIGINT, or until `stop_when` is true.

    `stop_when` and `on_progress` are called on the event loop, at least once a second. `store` is
    used and left open; without it the store of the settings is opened and closed here. With
    `stop_when`, alerts and rollups are brought up to date once more at the end.

    Raises FatalError, one clear line, if the job cannot begin or go on: Kafka or the store away for
    `startup_timeout_s` at the start, a wrong password, a missing topic.
    """
    # kafka-python reports every failed attempt at level ERROR; the source says it once a minute.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    redactor = redactor_of(settings.redaction)
    with ExitStack() as stack:
        stack.enter_context(redacted_logs(redactor))
        if store is None:
            store = stack.enter_context(_open(settings.store, "any", startup_timeout_s))
        _waiting_for(partial(_prepare, store, settings), startup_timeout_s)
        # It loads its model while the rest is opened, and while Kafka joins the group.
        compare = stack.enter_context(CompareProcess(_with_near_tie(store, settings)))
        purged = _waiting_for(partial(read_purged, store), startup_timeout_s)
        # Calls on one handle wait for each other, and no insert shall wait for the alerts.
        alert_store = stack.enter_context(_open(settings.store, "any", startup_timeout_s))
        experiment = settings.experiment
        alerts = AlertRunner(alert_store, settings.alerts, experiment.name, experiment.candidates)
        alerts.start()
        stack.callback(alerts.stop)
        rollup_store = stack.enter_context(_open(settings.store, "any", startup_timeout_s))
        rollups = RollupRunner(rollup_store, settings.store)
        rollups.start()
        stack.callback(rollups.stop)
        began = time.monotonic()
        counters = asyncio.run(
            _serve(settings, store, compare, redactor, purged, stop_when, on_progress, startup_timeout_s)
        )
        seconds = time.monotonic() - began
        if stop_when is not None:
            alerts.stop()
            alerts.run_once()
            rollups.stop()
            rollups.run_once()
    return RunReport(
        consumed=counters.consumed,
        compared=counters.compared,
        pairs=counters.pairs,
        skipped=dict(counters.skipped),
        failed=dict(counters.failed),
        dead_lettered=counters.dead_lettered,
        seconds=seconds,
    )


async def _serve(
    settings: Settings,
    store: Store,
    compare: Compare,
    redactor: Redactor | None,
    purged: PurgedPositions,
    stop_when: Callable[[Counters], bool] | None,
    on_progress: Callable[[Counters], None] | None,
    startup_timeout_s: float,
) -> Counters:
    ledger = Ledger(settings.kafka.group)
    stop_writing = threading.Event()
    pipeline = Pipeline(
        experiment=settings.experiment.name,
        source=KafkaSource(settings.kafka, settings.delivery, ledger, startup_timeout_s=startup_timeout_s),
        ledger=ledger,
        intake=Intake(settings.experiment, purged=purged),
        replayer=Replayer(settings.experiment, settings.endpoints),
        compare=compare,
        writer=Writer(store, stop_writing, group=settings.kafka.group, redactor=redactor),
        dead_letters=DeadLetterTopic(settings.kafka, redactor),
        delivery=settings.delivery,
        stop_writing=stop_writing,
        on_progress=on_progress,
    )
    with _Signals(pipeline.stop):
        return await pipeline.run(stop_when)


def _with_near_tie(store: Store, settings: Settings) -> Settings:
    limit = near_tie_nats(store, settings.experiment.name, settings.compare.near_tie_nats)
    return msgspec.structs.replace(
        settings, compare=msgspec.structs.replace(settings.compare, near_tie_nats=limit)
    )


def _prepare(store: Store, settings: Settings) -> None:
    migrate.apply(store, settings.store)
    register_experiment(store, settings)


def _open(settings: StoreSettings, role: Role, timeout_s: float) -> Store:
    return _waiting_for(partial(open_store, settings, role=role), timeout_s)


def _waiting_for(call: Callable[[], T], timeout_s: float) -> T:
    """Call until the store is there; after `timeout_s` its absence is a FatalError."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return call()
        except RetryError as error:
            if time.monotonic() + _LOOK_AGAIN_S > deadline:
                raise FatalError(f"{error} (waited {timeout_s:.0f} s)") from error
            _log.warning("%s; trying again", error)
            time.sleep(_LOOK_AGAIN_S)


class _Signals:
    """SIGTERM and SIGINT call `stop` while inside. A second one ends the process as usual."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        # Only the main thread may take signals; in another one the caller has its own way to stop.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._loop.add_signal_handler(number, self._caught, number)

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _caught(self, number: signal.Signals) -> None:
        _log.warning("%s: no more records are taken, those under way are finished", number.name)
        self._remove()
        self._stop()

    def _remove(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._loop.remove_signal_handler(number)
