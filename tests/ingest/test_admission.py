"""The queue before an endpoint, on a clock that the test turns."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from ingest.admission import Admission, Call, NotAdmitted, Patience, Priority, begin_turn
from ingest.breaker import Breaker
from ingest.pacing import Pace
from tests.ingest.test_breaker import Middle


class Timer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Clock:
    """What an event loop has of time, standing still until `pass_s`."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()

    def time(self) -> float:
        return self.now_s

    def call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        timer = Timer(callback)
        heapq.heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    async def pass_s(self, seconds: float) -> None:
        until = self.now_s + seconds
        while self._timers and self._timers[0][0] <= until:
            self.now_s, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback()
            await settle()
        self.now_s = until


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Rig:
    """An admission, and calls that go on until they are told to end."""

    def __init__(self, *, rate: float | None = None, max_wait_s: float = 60.0, **limits: int) -> None:
        self.clock = Clock()
        self.admission = Admission(
            Breaker("cand", 3, Middle()),  # type: ignore[arg-type]
            Pace(rate),
            max_in_flight=limits.get("calls", 100),
            max_in_flight_bytes=limits.get("size", 1 << 40),
            max_wait_s=max_wait_s,
            timers=self.clock,
        )
        self.out: list[str] = []
        self.refused: list[tuple[str, str]] = []
        self.calls: dict[str, Call] = {}
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, name: str, size: int = 1, priority: Priority = Priority.FIRST) -> None:
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._call(name, size, priority))
        await settle()

    async def end(self, *names: str, away: bool = False, wish_s: float | None = None) -> None:
        for name in names:
            if away:
                self.calls[name].away("refused", wish_s)
            else:
                self.calls[name].present()
            self._ends[name].set()
            await self._tasks[name]
        await settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.gather(self._tasks[name], return_exceptions=True)
        await settle()

    async def break_it(self) -> None:
        for name in ("x", "y", "z"):
            await self.ask(name)
        await self.end("x", "y", "z", away=True)
        self.out.clear()
        assert self.admission.breaker.is_open

    async def _call(self, name: str, size: int, priority: Priority) -> None:
        try:
            async with self.admission.admitted(size, priority, Patience()) as call:
                self.out.append(name)
                self.calls[name] = call
                await self._ends[name].wait()
        except NotAdmitted as refused:
            self.refused.append((name, refused.why))


async def test_slots_are_given_to_golden_cases_then_by_age() -> None:
    rig = Rig(calls=1)
    await rig.ask("out")
    for name, priority in [
        ("extra", Priority.EXTRA), ("first", Priority.FIRST), ("golden 1", Priority.GOLDEN),
        ("second", Priority.FIRST), ("golden 2", Priority.GOLDEN),
    ]:  # fmt: skip
        await rig.ask(name, priority=priority)
    for name in ("out", "golden 1", "golden 2", "extra", "first"):
        await rig.end(name)
    assert rig.out == ["out", "golden 1", "golden 2", "extra", "first", "second"]
    assert (rig.admission.in_flight, rig.admission.waiting) == (1, 0)


async def test_a_record_that_began_earlier_goes_first_with_all_its_calls() -> None:
    rig = Rig(calls=1)
    await rig.ask("out")

    async def record(name: str, begun: asyncio.Event, *calls: Priority) -> None:
        begin_turn()
        await begun.wait()
        for number, priority in enumerate(calls):
            await rig.ask(f"{name}{number}", priority=priority)

    older, younger = asyncio.Event(), asyncio.Event()
    tasks = [
        asyncio.create_task(record("a", older, Priority.EXTRA, Priority.FIRST)),
        asyncio.create_task(record("b", younger, Priority.EXTRA, Priority.FIRST)),
    ]
    await settle()
    # The younger one is at the endpoint before the older one.
    for begun, task in ((younger, tasks[1]), (older, tasks[0])):
        begun.set()
        await task
    for name in ("out", "a1", "a0", "b1"):
        await rig.end(name)
    assert rig.out == ["out", "a1", "a0", "b1", "b0"]


async def test_bytes_hold_calls_back_and_a_large_one_is_not_overtaken() -> None:
    rig = Rig(size=100)
    await rig.ask("a", 60)
    await rig.ask("b", 40)
    await rig.ask("large", 500)
    await rig.ask("small", 1)
    assert rig.out == ["a", "b"] and rig.admission.in_flight_bytes == 100
    await rig.end("a")
    assert rig.out == ["a", "b"]
    await rig.end("b")
    # Larger than the limit: it goes alone.
    assert rig.out == ["a", "b", "large"]
    await rig.end("large")
    assert rig.out[-1] == "small" and rig.admission.in_flight_bytes == 1


async def test_the_answer_counts_as_it_comes() -> None:
    rig = Rig(size=100)
    await rig.ask("a", 10)
    rig.calls["a"].read(85)
    await rig.ask("b", 10)
    assert rig.out == ["a"]
    await rig.end("a")
    assert rig.out == ["a", "b"] and rig.admission.in_flight_bytes == 10


async def test_the_pace_lets_one_go_at_a_time() -> None:
    rig = Rig(rate=2.0)
    for name in "abc":
        await rig.ask(name)
    assert rig.out == ["a"]
    await rig.clock.pass_s(0.49)
    assert rig.out == ["a"]
    await rig.clock.pass_s(0.01)
    assert rig.out == ["a", "b"]
    await rig.clock.pass_s(5.0)
    assert rig.out == ["a", "b", "c"]


async def test_while_open_one_probe_goes_and_its_success_lets_all_go() -> None:
    rig = Rig()
    await rig.break_it()
    for name in "abc":
        await rig.ask(name)
    assert rig.out == []
    await rig.clock.pass_s(1.0)
    assert rig.out == ["a"] and rig.calls["a"].is_probe
    await rig.end("a", away=True)
    await rig.clock.pass_s(1.9)
    assert rig.out == ["a"]
    await rig.clock.pass_s(0.1)
    assert rig.out == ["a", "b"]
    await rig.end("b")
    assert rig.out == ["a", "b", "c"] and not rig.calls["c"].is_probe
    assert rig.refused == []


async def test_who_waits_too_long_is_refused_and_nobody_before() -> None:
    rig = Rig(max_wait_s=60.0)
    await rig.break_it()
    await rig.ask("probe")
    await rig.clock.pass_s(1.0)
    assert rig.out == ["probe"]
    await rig.ask("a")
    await rig.clock.pass_s(30.0)
    await rig.ask("b")
    await rig.clock.pass_s(29.9)
    assert rig.refused == []
    await rig.clock.pass_s(0.1)
    assert rig.refused == [("a", "breaker open (refused)")]
    await rig.clock.pass_s(30.0)
    assert [name for name, _ in rig.refused] == ["a", "b"]


async def test_patience_is_of_a_call_and_outlives_its_attempts() -> None:
    rig = Rig(max_wait_s=60.0)
    await rig.break_it()
    patience = Patience()
    for away_s in (1.0, 2.0, 4.0, 8.0, 16.0):
        probing = asyncio.create_task(_probe(rig.admission, patience))
        await settle()
        await rig.clock.pass_s(away_s)
        await probing
    last = asyncio.create_task(_probe(rig.admission, patience))
    await settle()
    # 31 s are gone: the next probe would go after 30 s more, and patience ends a second before.
    await rig.clock.pass_s(29.0)
    with pytest.raises(NotAdmitted):
        await last


async def _probe(admission: Admission, patience: Patience) -> None:
    async with admission.admitted(1, Priority.FIRST, patience) as call:
        call.away("refused")


async def test_a_cancelled_probe_lets_the_next_one_go() -> None:
    rig = Rig()
    await rig.break_it()
    await rig.ask("a")
    await rig.ask("b")
    await rig.clock.pass_s(1.0)
    assert rig.out == ["a"]
    await rig.cancel("a")
    assert rig.out == ["a", "b"]


async def test_a_call_that_is_cancelled_in_the_queue_or_at_its_turn_leaves_no_trace() -> None:
    rig = Rig(calls=1)
    await rig.ask("a")
    await rig.ask("b")
    await rig.ask("c")
    await rig.cancel("b")
    rig.calls["a"].present()
    rig._ends["a"].set()
    # "c" has its turn, and is cancelled before it can take it.
    await rig._tasks["a"]
    await rig.cancel("c")
    assert (rig.admission.in_flight, rig.admission.in_flight_bytes, rig.admission.waiting) == (0, 0, 0)
    await rig.ask("d")
    assert rig.out[-1] == "d"


async def test_paused_nothing_goes_and_patience_does_not_run() -> None:
    rig = Rig(max_wait_s=60.0)
    await rig.break_it()
    await rig.ask("a")
    rig.admission.pause()
    await rig.ask("b")
    await rig.clock.pass_s(3600.0)
    assert (rig.out, rig.refused, rig.admission.waiting) == ([], [], 2)
    rig.admission.resume()
    await settle()
    assert rig.out == ["a"]
    await rig.end("a")
    assert rig.out == ["a", "b"]


async def test_at_the_end_who_waits_for_a_pause_or_a_breaker_is_refused() -> None:
    paused, broken = Rig(), Rig()
    paused.admission.pause()
    await broken.break_it()
    waiting = asyncio.create_task(paused.admission.resumed())
    for rig in (paused, broken):
        await rig.ask("a")
        rig.admission.rest()
        await settle()
        await rig.ask("b")
    assert paused.refused == [("a", "paused by command"), ("b", "paused by command")]
    assert [name for name, _ in broken.refused] == ["a", "b"]
    with pytest.raises(NotAdmitted):
        await waiting


async def test_at_the_end_who_waits_for_a_slot_still_gets_it() -> None:
    rig = Rig(calls=1)
    await rig.ask("a")
    await rig.ask("b")
    rig.admission.rest()
    await rig.end("a")
    assert rig.out == ["a", "b"] and rig.refused == []


async def test_the_loops_own_clock_is_the_default() -> None:
    admission = Admission(
        Breaker("cand", 3), Pace(1000.0), max_in_flight=2, max_in_flight_bytes=10, max_wait_s=1.0
    )

    async def one() -> Any:
        async with admission.admitted(1, Priority.FIRST, Patience()) as call:
            call.present()
            return admission.in_flight

    assert max(await asyncio.gather(*(one() for _ in range(10)))) <= 2
    assert admission.in_flight == 0
