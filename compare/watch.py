"""The alert runner in a process of its own: `gnomon watch`. Opens what it needs, and no Kafka."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import msgspec
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, start_http_server

from compare.alerts.alert import Alert
from compare.alerts.runner import AlertRunner
from compare.alerts.watched import candidates_of, the_only_experiment
from compare.golden.schedule import GoldenSchedule, alone
from compare.operations.alert_metrics import AlertCollector
from compare.operations.golden_metrics import GoldenCollector
from compare.operations.rollback_metrics import RollbackCollector
from compare.rollback.runner import RollbackRunner
from compare.rollback.sinks import tellers_of
from compare.ship.schedule import VerdictSchedule
from compare.store import migrate
from compare.store.client import Store, open_store
from compare.waiting import waiting_for
from ingest.errors import FatalError
from ingest.settings import Settings, StoreSettings
from ingest.settings_alerts import AlertSettings
from ingest.settings_notify import NotifySettings
from ingest.settings_verdict import VerdictSettings

STARTUP_TIMEOUT_S = 30.0
"""How long the store may be away at the start. Later it is waited for as long as it takes."""


class Watched(msgspec.Struct, frozen=True):
    """What is watched. Without an experiment it is the store's only one; without candidates, all of it."""

    store: StoreSettings
    alerts: AlertSettings
    notify: NotifySettings = NotifySettings()
    verdict: VerdictSettings = VerdictSettings()
    experiment: str | None = None
    candidates: Sequence[str] = ()
    rollback: Settings | None = None
    """The experiment's own settings, to run its golden set and evaluate its rollback conditions with; None
    does neither, and asks no model."""


class OneRun(msgspec.Struct, frozen=True):
    """What one run came to. `watched_by` is the process that watched instead of us."""

    experiment: str
    events: list[Alert]
    watched_by: str | None


def watch_once(watched: Watched, *, startup_timeout_s: float = STARTUP_TIMEOUT_S) -> OneRun:
    """Fold what is new, store and send what it raised, end. Raises what the store raises."""
    with (
        _runner(watched, startup_timeout_s) as (experiment, candidates, runner),
        _golden(watched, startup_timeout_s) as golden,
    ):
        events = runner.run_once()
        if golden is not None:
            golden.run_once()
        with _rollback(watched, startup_timeout_s) as rollback:
            if rollback is not None:
                rollback.run_once()
        with _verdicts(watched, experiment, candidates, startup_timeout_s) as verdicts:
            verdicts.run_once()
        return OneRun(experiment, events, runner.watched_by)


def watch(
    watched: Watched,
    *,
    port: int | None = None,
    host: str = "127.0.0.1",
    on_start: Callable[[str], None] = lambda experiment: None,
    startup_timeout_s: float = STARTUP_TIMEOUT_S,
) -> None:
    """Watch until the thread is told to end by an exception, as `StopSignals` does; then end in order.

    `port` serves `/metrics`. `on_start` gets the experiment's name. Raises FatalError if the store is away
    for `startup_timeout_s` at the start, if the port cannot be had, or if the experiment is unknown.
    """
    with (
        _runner(watched, startup_timeout_s) as (experiment, candidates, runner),
        _golden(watched, startup_timeout_s) as golden,
        _rollback(watched, startup_timeout_s) as rollback,
        _verdicts(watched, experiment, candidates, startup_timeout_s) as verdicts,
        _metrics(runner, golden, rollback, host, port),
        ExitStack() as running,
    ):
        on_start(experiment)
        for one in (runner, golden, rollback, verdicts):
            if one is not None:
                running.callback(one.stop)
                one.start()
        threading.Event().wait()


@contextmanager
def _runner(watched: Watched, timeout_s: float) -> Iterator[tuple[str, Sequence[str], AlertRunner]]:
    with waiting_for(partial(open_store, watched.store, role="any"), timeout_s) as store:
        waiting_for(partial(migrate.apply, store, watched.store), timeout_s)
        experiment = watched.experiment or waiting_for(partial(the_only_experiment, store), timeout_s)
        candidates = watched.candidates or waiting_for(partial(candidates_of, store, experiment), timeout_s)
        yield experiment, candidates, _made(store, watched, experiment, candidates)


def _made(store: Store, watched: Watched, experiment: str, candidates: Sequence[str]) -> AlertRunner:
    return AlertRunner(
        store,
        watched.alerts,
        experiment,
        candidates,
        notify=watched.notify,
        cluster=watched.store.cluster,
    )


@contextmanager
def _rollback(watched: Watched, timeout_s: float) -> Iterator[RollbackRunner | None]:
    settings = watched.rollback
    if settings is None or not settings.rollback.enabled:
        yield None
        return
    with waiting_for(partial(open_store, watched.store, role="any"), timeout_s) as store:
        yield RollbackRunner(store, settings, tellers_of(settings))


@contextmanager
def _golden(watched: Watched, timeout_s: float) -> Iterator[GoldenSchedule | None]:
    settings = watched.rollback
    if settings is None or settings.golden.set is None:
        yield None
        return
    with waiting_for(partial(open_store, watched.store, role="any"), timeout_s) as store:
        yield GoldenSchedule(store, settings, alone(store, settings))


@contextmanager
def _verdicts(
    watched: Watched, experiment: str, candidates: Sequence[str], timeout_s: float
) -> Iterator[VerdictSchedule]:
    with waiting_for(partial(open_store, watched.store, role="any"), timeout_s) as store:
        yield VerdictSchedule(store, watched.verdict, experiment, candidates, cluster=watched.store.cluster)


@contextmanager
def _metrics(
    runner: AlertRunner,
    golden: GoldenSchedule | None,
    rollback: RollbackRunner | None,
    host: str,
    port: int | None,
) -> Iterator[None]:
    if port is None:
        yield
        return
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    registry.register(AlertCollector(runner.read_status))
    if golden is not None:
        registry.register(GoldenCollector(golden.read_latest))
    if rollback is not None:
        registry.register(RollbackCollector(rollback.read_last))
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise FatalError(f"--port {port}: cannot listen on {host}: {error.strerror or error}") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
