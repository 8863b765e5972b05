"""Who may call an endpoint now: one queue before all of its limits.

A call goes when nothing is paused, the breaker lets it, a slot and its bytes are free and the pace allows it.
The first in the queue goes first: golden cases, then the calls of the oldest record, its first answers before
the rest. Nothing overtakes it, so that a large request is not passed for ever by small ones. A record is done
before younger ones have the endpoint, since what is stored of those waits for its offset.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from enum import IntEnum
from typing import NamedTuple, Protocol

import msgspec

from ingest.breaker import Breaker
from ingest.pacing import Pace

_PAUSED = "paused by command"


class Priority(IntEnum):
    """Lower goes first: golden cases of all calls, the others among the calls of one record."""

    GOLDEN = 0
    """Cases of a golden run, which alert on time."""
    FIRST = 1
    """The first answers of a record."""
    EXTRA = 2
    """Second answers (noise), forced scoring, and what is asked about the server."""


_turns = itertools.count()
_turn: ContextVar[int | None] = ContextVar("turn", default=None)


def begin_turn() -> None:
    """All calls of this task from now on, and of the tasks that it makes, are one record's.

    At every endpoint they go before the calls of whoever begins later.
    """
    _turn.set(next(_turns))


class NotAdmitted(Exception):  # noqa: N818 - internal, turned into EndpointAwayError by the endpoint
    """The call will not go: the breaker stayed open too long, or the service ends. `why` in a few words."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Timers(Protocol):
    """What an event loop has: its clock, and callbacks at a time of it."""

    def time(self) -> float:
        """Seconds."""
        ...

    def call_at(self, when: float, callback: Callable[[], object]) -> Cancels:
        """Call later."""
        ...


class Cancels(Protocol):
    """A callback that may be called off."""

    def cancel(self) -> None:
        """Call it off."""
        ...


class Patience(msgspec.Struct):
    """How long one call has waited for an open breaker, over all its attempts: since when, if ever."""

    since: float | None = None


class _Waiter(NamedTuple):
    """One place in the queue; ordered by its first four fields."""

    is_after_golden: bool
    turn_number: int
    priority: Priority
    number: int
    size: int
    patience: Patience
    turn: asyncio.Future[Call]


class Call:
    """One call that is out. Say `away` or `present` before it ends."""

    def __init__(self, admission: Admission, size: int, *, is_probe: bool) -> None:
        self._admission = admission
        self.size = size
        self.is_probe = is_probe
        self.is_told = False

    def read(self, size: int) -> None:
        """Count `size` more bytes of the answer."""
        self.size += size
        self._admission.in_flight_bytes += size

    def present(self) -> None:
        """It met somebody, whatever was answered."""
        self.is_told = True
        self._admission.breaker.present(self._admission.now(), is_probe=self.is_probe)

    def away(self, cause: str, retry_after_s: float | None = None) -> None:
        """It met nobody."""
        self.is_told = True
        self._admission.breaker.away(self._admission.now(), cause, retry_after_s, is_probe=self.is_probe)


class Admission:
    """The limits of one endpoint. Everything on one event loop; `pause` and `resume` too."""

    def __init__(
        self,
        breaker: Breaker,
        pace: Pace,
        *,
        max_in_flight: int,
        max_in_flight_bytes: int,
        max_wait_s: float,
        timers: Timers | None = None,
        on_due: Callable[[], object] = lambda: None,
    ) -> None:
        """`max_wait_s` is the patience of a call with an open breaker; `timers` the event loop by default.

        `on_due` is called when the open breaker lets a probe go and nobody waits to be it.
        """
        self.breaker = breaker
        self.in_flight = 0
        self.in_flight_bytes = 0
        self._pace = pace
        self._max_in_flight = max_in_flight
        self._max_bytes = max_in_flight_bytes
        self._max_wait_s = max_wait_s
        self._timers = timers
        self._on_due = on_due
        self._queue: list[_Waiter] = []
        self._numbers = itertools.count()
        self._timer: Cancels | None = None
        self._may_go_on = asyncio.Event()
        self._may_go_on.set()
        self._is_resting = False
        self.is_paused = False
        """Whether a person stopped all calls."""

    @property
    def waiting(self) -> int:
        """Calls in the queue."""
        return sum(not waiter.turn.done() for waiter in self._queue)

    def now(self) -> float:
        """The time of the clock in use."""
        return self._clock().time()

    def pause(self) -> None:
        """Let no call go any more; those that are out end as they do."""
        self.is_paused = True
        self._may_go_on.clear()

    def resume(self) -> None:
        """Let calls go again. The time of the pause is nobody's fault, so patience begins anew."""
        self.is_paused = False
        self._may_go_on.set()
        for waiter in self._queue:
            waiter.patience.since = None
        self._dispatch()

    def rest(self) -> None:
        """The service ends: a call that would wait for a pause or a breaker is refused from now on."""
        self._is_resting = True
        self._may_go_on.set()
        self._dispatch()

    async def resumed(self) -> None:
        """Wait while paused. Raises NotAdmitted if the service ends first."""
        await self._may_go_on.wait()
        if self.is_paused:
            raise NotAdmitted(_PAUSED)

    @asynccontextmanager
    async def admitted(self, size: int, priority: Priority, patience: Patience) -> AsyncIterator[Call]:
        """Wait for the turn of a call of `size` bytes; it is out while inside. Raises NotAdmitted."""
        turn: asyncio.Future[Call] = asyncio.get_running_loop().create_future()
        # A call of no record is its own.
        of_record = _turn.get()
        turn_number = next(_turns) if of_record is None else of_record
        place = (priority is not Priority.GOLDEN, turn_number, priority, next(self._numbers))
        heapq.heappush(self._queue, _Waiter(*place, size, patience, turn))
        self._dispatch()
        try:
            call = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._leave(turn.result())
            raise
        try:
            yield call
        finally:
            self._leave(call)

    def _leave(self, call: Call) -> None:
        self.in_flight -= 1
        self.in_flight_bytes -= call.size
        if call.is_probe and not call.is_told:
            self.breaker.lost()
        self._dispatch()

    def _dispatch(self) -> None:
        """Let go who may, in order, and come back when time alone will let the next one go."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while (head := self._head()) is not None:
            if self.is_paused:
                if self._is_resting:
                    self._refuse(_PAUSED)
                return None
            now = self.now()
            breaker_s = self.breaker.wait_s(now)
            if breaker_s > 0:
                return self._come_back(min(now + breaker_s, self._refuse_impatient(now)))
            has_room = self.in_flight_bytes + head.size <= self._max_bytes or not self.in_flight
            if self.in_flight >= self._max_in_flight or not has_room:
                return None
            pace_s = self._pace.wait_s(now)
            if pace_s > 0:
                return self._come_back(now + pace_s)
            heapq.heappop(self._queue)
            self._pace.take(now)
            self.in_flight += 1
            self.in_flight_bytes += head.size
            head.turn.set_result(Call(self, head.size, is_probe=self.breaker.call()))
        if self.breaker.is_open and not self.is_paused and not self._is_resting:
            # Without traffic nobody would ever learn that it is back.
            now = self.now()
            breaker_s = self.breaker.wait_s(now)
            if breaker_s > 0:
                return self._come_back(now + breaker_s)
            self._on_due()
        return None

    def _head(self) -> _Waiter | None:
        while self._queue and self._queue[0].turn.done():
            heapq.heappop(self._queue)
        return self._queue[0] if self._queue else None

    def _refuse(self, why: str) -> None:
        for waiter in self._queue:
            if not waiter.turn.done():
                waiter.turn.set_exception(NotAdmitted(why))

    def _refuse_impatient(self, now: float) -> float:
        """Refuse who has waited long enough for the breaker; when the next one will have."""
        why = f"breaker open ({self.breaker.cause})"
        if self._is_resting:
            self._refuse(why)
        following = float("inf")
        for waiter in self._queue:
            if waiter.turn.done():
                continue
            if waiter.patience.since is None:
                waiter.patience.since = now
            until = waiter.patience.since + self._max_wait_s
            if until <= now:
                waiter.turn.set_exception(NotAdmitted(why))
            else:
                following = min(following, until)
        return following

    def _come_back(self, when: float) -> None:
        if when < float("inf"):
            self._timer = self._clock().call_at(when, self._dispatch)

    def _clock(self) -> Timers:
        if self._timers is None:
            self._timers = asyncio.get_running_loop()
        return self._timers
