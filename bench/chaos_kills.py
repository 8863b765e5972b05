"""The course of the chaos run: one service killed again and again, then two on one group, then a zombie."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import msgspec

from bench import chaos_points as points
from bench.chaos_proxy import Trap
from bench.chaos_service import Killed, Service
from bench.chaos_world import Position, World

SPRINGS_WITHIN_S = 90.0
"""A trap that has not sprung by then is given up, and the kill comes at random."""
_RANDOM_S = 12.0
_LOOKS_AGAIN_S = 2.0
_MORE_RECORDS = 20
_GIVES_UP_AFTER = 4
"""Runs of one slot that ended by themselves: then there is nothing to test."""


class Plan(msgspec.Struct, frozen=True):
    """How much of everything. `kills` is the sum over all phases."""

    records: int = 3_300
    zombie_records: int = 300
    kills: int = 52
    seconds: float = 900.0
    """When they are over no more kills are begun: the run is then short of kills, and says so."""
    seed: int = 1
    faulty_share: float = 0.1
    single: tuple[str, ...] = ()
    paired: tuple[str, ...] = ()
    """The points of the two phases, in order; drawn where they are not given."""

    @property
    def migration_kills(self) -> int:
        """Those of `gnomon migrate` on a database of its own, beside the rest."""
        return max(1, self.kills // 12)

    @property
    def service_kills(self) -> int:
        """Those of the service, in both phases."""
        if self.single:
            return len(self.single) + len(self.paired)
        return self.kills - self.migration_kills

    @property
    def single_kills(self) -> int:
        """Those while one service runs alone."""
        return len(self.single) or self.service_kills - self.service_kills * 2 // 5


class Snapshot(msgspec.Struct, frozen=True):
    """What had an outcome at a time (seconds since the epoch)."""

    at: float
    stored: frozenset[Position]


class Course:
    """What was done so far. `say` prints progress."""

    def __init__(self, world: World, plan: Plan, say: Callable[[str], None]) -> None:
        self.world = world
        self.plan = plan
        self.say = say
        self.draw = random.Random(plan.seed)
        self.slots = [world.service("A"), world.service("B")]
        self.snapshots: list[Snapshot] = []
        self.migration_kills: list[Killed] = []
        self._began = time.monotonic()

    @property
    def kills(self) -> list[Killed]:
        """Every SIGKILL so far, of services and migrations."""
        found = [kill for slot in self.slots for kill in slot.kills]
        return sorted([*found, *self.migration_kills], key=lambda kill: kill.at)

    def under_kills(self) -> bool:
        """Both phases of kills, and then all records brought to an end. False if some never came to it."""
        plan = self.plan
        single, paired = self._points()
        records = plan.records - plan.zombie_records
        share = records // (plan.service_kills + 1)
        one, other = self.slots
        for point in single:
            if self._is_over():
                break
            self.world.produce(share)
            self._kill(one, point)
        for slot in self.slots:
            self._start(slot)
        for point in paired:
            if self._is_over():
                break
            self.world.produce(share)
            victim = self.draw.choice(self.slots)
            if point == points.IN_REBALANCE:
                # A member that comes makes the others hand over: strike one of them meanwhile.
                self._kill(victim, points.AT_RANDOM, self.draw.uniform(0.0, 1.0))
                self._start(victim)
                time.sleep(self.draw.uniform(2.0, 10.0))
                victim = other if victim is one else one
                self._kill(victim, point, 0.0)
            else:
                self._kill(victim, point)
            self._start(victim)
        self.world.produce(max(0, records - len(self.world.produced)))
        self.say("no more kills: waiting for the rest to be stored")
        return self.world.wait_until_stored(self.say)

    def _points(self) -> tuple[list[str], list[str]]:
        plan = self.plan
        if plan.single:
            return list(plan.single), list(plan.paired)
        single = points.order_of(points.SINGLE, plan.single_kills, 0.4, self.draw)
        # The first start makes the schema, so that is where the service can be killed in a migration.
        single[0] = points.IN_MIGRATION
        paired_points = (*points.PAIRED, points.IN_REBALANCE, points.IN_REBALANCE)
        paired = points.order_of(paired_points, plan.service_kills - plan.single_kills, 0.25, self.draw)
        return single, paired

    def zombie(self) -> bool:
        """Freeze a member with a batch half written until another has taken over; whether it came to that."""
        frozen = self.slots[0]
        frozen.freeze_when_sprung()
        frozen.proxy.arm(Trap(points.insert_of("requests"), "hold"))
        self.world.produce(self.plan.zombie_records)
        if not frozen.proxy.sprung.wait(SPRINGS_WITHIN_S):
            self.say("zombie: the service to freeze stored nothing")
            return False
        self.say(f"zombie: {frozen.run} is frozen between side tables and pairs, until all else is stored")
        is_taken_over = self.world.wait_until_stored(self.say)
        frozen.thaw()
        frozen.proxy.release()
        time.sleep(8.0)
        self.say(f"zombie: {frozen.run} woke up {'' if is_taken_over else 'before its work was taken over'}")
        return is_taken_over

    def end(self) -> list[int | None]:
        """SIGTERM to every service; their exit codes."""
        return [slot.stop() for slot in self.slots]

    def migrations(self) -> threading.Thread:
        """Kill `gnomon migrate` on a database of its own, again and again; runs beside everything else."""
        thread = threading.Thread(target=self._migrations, name="migrations", daemon=True)
        thread.start()
        return thread

    def _migrations(self) -> None:
        draw = random.Random(f"{self.plan.seed} migrations")
        slot = self.world.service("M", "chaos_migrated")
        for _ in range(self.plan.migration_kills):
            slot.point = points.IN_MIGRATION
            slot.proxy.arm(points.trap_at(points.IN_MIGRATION, draw))
            slot.start(("migrate",))
            if slot.proxy.sprung.wait(SPRINGS_WITHIN_S):
                slot.kill(points.IN_MIGRATION)
                self.migration_kills = list(slot.kills)
                self.say(f"{slot.run} killed {points.IN_MIGRATION}, on a database of its own")
        slot.proxy.arm(None)
        slot.start(("migrate",))
        deadline = time.monotonic() + SPRINGS_WITHIN_S
        while slot.is_alive and time.monotonic() < deadline:
            time.sleep(0.1)

    def _start(self, slot: Service) -> None:
        self.snapshot()
        self.world.stop_merges()
        slot.start()

    def snapshot(self) -> None:
        """Note what is stored now."""
        stored = frozenset(self.world.stored())
        self.snapshots.append(Snapshot(time.time(), stored))

    def _kill(self, victim: Service, point: str, after_s: float | None = None) -> None:
        """Kill at the point, or after some time; a point that does not come is a random one.

        A service that does not run is started for it, with the trap set.
        """
        inserts = victim.proxy.inserts
        is_trapped = point not in (points.AT_RANDOM, points.IN_REBALANCE)
        victim.point = point
        victim.proxy.arm(points.trap_at(point, self.draw) if is_trapped else None)
        if not victim.is_alive:
            self._start(victim)
        if is_trapped:
            if not self._wait(victim, victim.proxy.sprung.is_set):
                victim.proxy.arm(None)
                point = points.AT_RANDOM
                self.say(f"{victim.run}: no moment came {victim.point}")
        else:
            if after_s is None and self.draw.random() < 0.6:
                # While it works, and not only while it starts.
                self._wait(victim, lambda: victim.proxy.inserts > inserts)
                after_s = self.draw.uniform(0.0, 0.6)
            time.sleep(self.draw.uniform(0.0, _RANDOM_S) if after_s is None else after_s)
        victim.kill(point)
        if victim.ended_alone and victim.ended_alone[-1].startswith(f"{victim.run}:"):
            self.say(f"ended by itself: {victim.ended_alone[-1]}")
            if len(victim.ended_alone) >= _GIVES_UP_AFTER:
                raise RuntimeError(f"the service does not run: {victim.ended_alone[-1]}")
        stored, produced = len(self.world.stored()), len(self.world.produced)
        self.say(f"kill {len(self.kills)}: {victim.run} {point}; {stored} of {produced} records stored")

    def _wait(self, victim: Service, has_come: Callable[[], bool]) -> bool:
        """Wait for it; False if the process ends, or too much time passes.

        Where nothing is left to do, there is more to do.
        """
        deadline, looks_at = time.monotonic() + SPRINGS_WITHIN_S, time.monotonic() + _LOOKS_AGAIN_S
        while not has_come():
            now = time.monotonic()
            if not victim.is_alive or now > deadline:
                return has_come()
            if now > looks_at:
                looks_at = now + _LOOKS_AGAIN_S
                if not self.world.produced.keys() - self.world.stored():
                    self.world.produce(_MORE_RECORDS)
            time.sleep(0.01)
        return True

    def _is_over(self) -> bool:
        return time.monotonic() - self._began > self.plan.seconds
