"""Golden runs within a service: by its own replayer, so before mirrored traffic that waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from compare.golden.case import GoldenCase
from compare.golden.run import Limits
from compare.golden.schedule import GoldenSchedule
from compare.golden.session import Outcome, Session
from compare.operations.golden_metrics import GoldenCollector
from compare.pipeline import Pipeline
from compare.store.client import Store
from ingest.errors import RetryError
from ingest.redact import Redactor
from ingest.replay import Replayer
from ingest.settings import Settings


@asynccontextmanager
async def golden_runs(
    settings: Settings,
    open_another: Callable[[], Store],
    replayer: Replayer,
    pipeline: Pipeline,
    redactor: Redactor | None,
    registry: CollectorRegistry,
) -> AsyncIterator[None]:
    """Run the set of `[golden]` by the clock while inside, once the pipeline has started.

    What is under way at the end is given up: the next start runs it again. Without `golden.set` nothing
    is opened. Raises FatalError where `golden.endpoints` names one that is not of the experiment.
    """
    if settings.golden.set is None:
        yield
        return
    store = await asyncio.to_thread(open_another)
    try:
        session = Session(store, settings, replayer, pipeline.compare, redactor)
        on_loop = OnLoop(session, asyncio.get_running_loop(), lambda: pipeline.is_draining)
        schedule = GoldenSchedule(
            store, settings, on_loop, is_ready=lambda: pipeline.is_started and not pipeline.is_draining
        )
        registry.register(GoldenCollector(schedule.read_latest))
        schedule.start()
        try:
            yield
        finally:
            on_loop.end()
            await asyncio.to_thread(schedule.stop)
    finally:
        await asyncio.to_thread(store.close)


class OnLoop:
    """Runs sets on an event loop, called from a thread that waits for them. See `RunsSets`."""

    def __init__(
        self, session: Session, loop: asyncio.AbstractEventLoop, is_draining: Callable[[], bool]
    ) -> None:
        self._session = session
        self._is_draining = is_draining
        self._loop = loop
        self._lock = threading.Lock()
        self._under_way: Future[Outcome] | None = None
        self._is_ending = False

    def __call__(self, set_name: str, cases: Sequence[GoldenCase], endpoint: str, limits: Limits) -> Outcome:
        """Run it and wait. Raises what `Session.run` raises, and RetryError once `end` was called."""
        with self._lock:
            self._refuse_at_end()
            going = self._session.run(set_name, cases, endpoint, "schedule", limits)
            self._under_way = asyncio.run_coroutine_threadsafe(going, self._loop)
        try:
            return self._under_way.result()
        except BaseException:
            # Connections that are closed under it raise whatever they like.
            self._refuse_at_end()
            raise

    def end(self) -> None:
        """Give up the run that is under way, and every later one."""
        with self._lock:
            self._is_ending = True
            if self._under_way is not None:
                self._under_way.cancel()

    def _refuse_at_end(self) -> None:
        if self._is_ending or self._is_draining():
            raise RetryError("the golden run was given up: the service ends")
