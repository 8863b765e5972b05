"""Keeps the endpoints of a running service at what people ordered and at what the day has left."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta

from compare.alerts.scheduler import Ticker
from compare.controls import Pause, let_go_since, pauses
from compare.store.client import Store
from compare.token_use import save_use, used_by_others
from ingest.endpoint import Endpoint
from ingest.errors import RetryError
from ingest.kafka_errors import AwayLog
from ingest.token_budget import TokenUse

INTERVAL_S = 2.0
"""How soon an order is obeyed."""
TICKS_A_COUNT = 5
"""Tokens are stored and read every so many intervals: a kill forgets those of 10 s at most."""

_log = logging.getLogger(__name__)


class IsolationRunner:
    """Polls the orders and stores the token counts, on a thread of its own; `store` is used by nothing else.

    While the store is away, what was ordered last holds, and the counts wait.
    """

    def __init__(
        self,
        store: Store,
        experiment: str,
        endpoints: Mapping[str, Endpoint],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        release: Callable[[int], None] | None = None,
    ) -> None:
        """`release` lets a partition go on that is held; it is called on the event loop."""
        self._store = store
        self._experiment = experiment
        self._endpoints = endpoints
        self._now = now
        self._run_id = uuid.uuid4().hex
        self._saved: dict[tuple[str, date], TokenUse] = {}
        self._ticks = 0
        self._ticker = Ticker(self._tick, INTERVAL_S, "isolation")
        self._away = AwayLog("the store (asked for pauses and token budgets)")
        self._held: list[Pause] = []
        self._release = release
        self._let_go_us = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def read(self) -> None:
        """Read orders and counts. Blocks; raises what the store raises. Call it before `running`."""
        self._held = pauses(self._store)
        # What was held before this start is not held any more.
        self._let_go()
        self._count()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Obey and count while inside, from the first call on."""
        self._loop = asyncio.get_running_loop()
        self._obey(self._held)
        self._ticker.start()
        try:
            yield
        finally:
            await asyncio.to_thread(self._finish)

    def _tick(self) -> None:
        try:
            held, let_go = pauses(self._store), self._let_go()
            self._ticks += 1
            if self._ticks % TICKS_A_COUNT == 0:
                self._count()
        except RetryError as error:
            self._away.away(str(error))
            return
        self._away.back()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._obey, held)
            if self._release is not None:
                for partition in let_go:
                    _log.warning("partition %d is let go by command", partition)
                    self._loop.call_soon_threadsafe(self._release, partition)

    def _let_go(self) -> list[int]:
        """Partitions let go since this was last asked."""
        found = let_go_since(self._store, self._experiment, self._let_go_us)
        self._let_go_us = max([self._let_go_us, *(ordered for _, ordered in found)])
        return [partition for partition, _ in found]

    def _obey(self, held: list[Pause]) -> None:
        """On the loop: pause and resume the endpoints as ordered, and say so at each change."""
        for name, endpoint in self._endpoints.items():
            order = next((one for one in held if one.scope.covers(self._experiment, name)), None)
            if order is not None and not endpoint.admission.is_paused:
                _log.warning('endpoint "%s" is paused by command: %s', name, order)
                endpoint.admission.pause()
            elif order is None and endpoint.admission.is_paused:
                _log.warning('endpoint "%s" is resumed by command', name)
                endpoint.admission.resume()

    def _count(self) -> None:
        """Store what was counted since, and read what others counted."""
        counted = {
            (name, day): use
            for name, endpoint in self._endpoints.items()
            for day, use in endpoint.budget.own().items()
        }
        changed = {key: use for key, use in counted.items() if self._saved.get(key) != use}
        save_use(self._store, self._experiment, self._run_id, changed)
        self._saved = counted
        today = self._now().astimezone(UTC).date()
        others = used_by_others(self._store, self._run_id, (today, today + timedelta(days=1)))
        for name, endpoint in self._endpoints.items():
            endpoint.budget.set_others(others.get(name, {}))

    def _finish(self) -> None:
        self._ticker.stop()
        try:
            self._count()
        except RetryError as error:
            _log.warning("the last tokens that the endpoints computed are not counted: %s", error)
