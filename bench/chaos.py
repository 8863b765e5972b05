"""Nothing lost, nothing twice, under SIGKILL. Run: python -m bench.chaos [--records N] [--kills N] [--seed N]

The real broker, the real engine in a process of its own, two stub endpoints that fail 10 % of the calls, and
`gnomon run` in child processes that are killed at random and at chosen moments: first one, then two on one
consumer group, at last one that is frozen until the other has taken over, and wakes up. Then it counts, from
what was produced, from the raw tables (whose merges are off), the views and the calls that the endpoints saw.
It takes about twenty minutes; the exit code is 1 if a line of the table is missed.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from bench import chaos_count as count
from bench.chaos_count import Line, exactly
from bench.chaos_kills import Course, Plan
from bench.chaos_service import left_behind
from bench.chaos_world import World
from compare.sweeper import Sweeper


def chaos(plan: Plan, say: Callable[[str], None]) -> list[Line]:
    """Run the whole course and return the table. Ends all that it starts, also when it fails."""
    began = time.monotonic()

    def stamped(text: str) -> None:
        say(f"{time.monotonic() - began:6.1f} s  {text}")

    with World(seed=plan.seed, faulty_share=plan.faulty_share) as world:
        stamped(f"seed {plan.seed}: broker, engine and endpoints run")
        course = Course(world, plan, stamped)
        migrating = course.migrations()
        course.under_kills()
        migrating.join()
        course.snapshot()
        lines = killed(course)
        lines += after_kills(course)
        before = duplicated(world)
        woke = course.zombie()
        codes = list(course.end())
        rolling = world.service("R")
        rolling.start(("rollup",))
        while rolling.is_alive:
            time.sleep(0.1)
        codes.append(rolling.exit_code)
        left = left_behind(world.setting.folder)
        lines.append(exactly("processes that killed services left behind", len(left), 0))
        lines += after_zombie(course, before, woke=woke, codes=codes)
        return lines


def killed(course: Course) -> list[Line]:
    """What was done to the services."""
    kills = course.kills
    points = Counter(kill.point for kill in kills)
    named = ", ".join(f"{number} {point}" for point, number in points.most_common())
    alone = [words for slot in course.slots for words in slot.ended_alone]
    calls = course.world.endpoints.calls()
    faulty = sum(call.ended not in ("ok", "broken") for call in calls) / max(1, len(calls))
    is_enough = len(kills) >= course.plan.kills
    return [
        Line("SIGKILLs", str(len(kills)), f"at least {course.plan.kills}", is_enough),
        Line(f"  {named}", ""),
        Line("services that ended by themselves", f"{len(alone)} {' / '.join(alone)}", "0", not alone),
        Line("calls of the endpoints", f"{len(calls):,}, {faulty:.1%} faulty"),
        Line(f"  {count.faults_of(calls)}", ""),
    ]


def duplicated(world: World) -> dict[str, int]:
    """Duplicated keys in each raw table now."""
    with world.store() as store:
        return {table: count.duplicates(store, table) for table in count.KEYS}


def after_kills(course: Course) -> list[Line]:
    """What the kills did to the records."""
    world, kills = course.world, course.kills
    calls = world.endpoints.calls()
    bound = count.WASTED_A_KILL * len(kills)
    beyond = count.wasted(calls)
    again = count.asked_though_stored(calls, course.snapshots, world.produced)
    twice = duplicated(world)
    with world.store() as store:
        lines = [
            Line("records produced under kills", f"{len(world.produced):,}"),
            exactly("lost", len(count.lost(store, world.produced)), 0),
            *(exactly(f"duplicated keys in {table}", twice[table], 0) for table in count.ENDS),
            exactly("records with two outcomes", count.with_two_outcomes(store), 0),
            Line("rows of attempts without a pair, not swept yet", f"{count.orphans(store):,}"),
        ]
        with world.store("chaos_migrated") as other:
            differing = count.schema_of(store) ^ count.schema_of(other)
            named = ", ".join(sorted({str(column[0]) for column in differing})) or "none"
            lines.append(Line("tables that killed migrations left otherwise", named, "none", not differing))
    lines.append(
        Line(
            "replay calls wasted",
            f"{beyond:,} ({beyond / max(1, len(kills)):.0f} a kill)",
            f"at most {bound:,} ({count.WASTED_A_KILL} a kill)",
            beyond <= bound,
        )
    )
    lines.append(exactly("calls for records that were stored already", again, 0))
    return lines


def after_zombie(
    course: Course, before: dict[str, int], *, woke: bool, codes: Sequence[int | None]
) -> list[Line]:
    """What the zombie did, and what holds at the very end."""
    world = course.world
    by_zombie = duplicated(world)["pairs"] - before["pairs"]
    with world.store() as store:
        # As if a day had passed: the sweeper leaves alone what is young.
        Sweeper(store, "chaos").sweep(datetime.now(UTC) + timedelta(hours=26))
        count.wait_for_deletes(store)
        after = duplicated(world)
        beside = sum(after[table] for table in count.SIDES)
        consumed, missing = count.unaccounted(store)
        differ = count.rollups_differ(store)
        return [
            Line("a frozen member woke up after its work was taken over", str(woke), "True", woke),
            Line("  keys that it duplicated in pairs", f"{by_zombie:,}"),
            exactly("rows of attempts without a pair, once swept", count.orphans(store), 0),
            # What a zombie stored twice it stored beside twice.
            Line(
                "duplicated keys in side tables, once swept", f"{beside:,}", "0", not beside or by_zombie > 0
            ),
            exactly("lost, of all records", len(count.lost(store, world.produced)), 0),
            exactly("duplicated keys in views", count.duplicates_in_views(store), 0),
            exactly("consumed records", consumed, len(world.produced)),
            exactly("unaccounted records", missing, 0),
            Line("rollups that differ from the raw views", differ or "0", "0", not differ),
            Line(
                "exit codes after SIGTERM, and of `gnomon rollup`",
                str(codes),
                "0",
                all(code == 0 for code in codes),
            ),
        ]


def table_of(lines: Sequence[Line]) -> str:
    """The table, a line each, with its verdict."""
    width = max(len(line.what) for line in lines if line.value)
    verdicts = {True: "OK", False: "MISSED", None: ""}
    return "\n".join(
        f"{verdicts[line.is_ok]:7}{line.what:{width}}  {line.value:>10}"
        + (f"  wanted {line.wanted}" if line.wanted else "")
        for line in lines
    )


def main() -> None:
    plan = Plan()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, default=plan.records)
    parser.add_argument("--kills", type=int, default=plan.kills)
    parser.add_argument("--seconds", type=float, default=plan.seconds, help="no kills are begun after that")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    given = parser.parse_args()
    plan = msgspec.structs.replace(
        plan,
        records=given.records,
        zombie_records=max(60, given.records // 11),
        kills=given.kills,
        seconds=given.seconds,
        seed=given.seed,
    )

    def say(text: str) -> None:
        print(text, flush=True)

    # What was started is ended by that too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lines = chaos(plan, say)
    say(f"seed {plan.seed}")
    say(table_of(lines))
    sys.exit(any(line.is_ok is False for line in lines))


if __name__ == "__main__":
    main()
