"""The short form of bench/chaos.py: nothing lost, nothing twice, with a SIGKILL at each chosen moment."""

from __future__ import annotations

from bench import chaos_points as points
from bench.chaos import chaos, table_of
from bench.chaos_kills import Plan

PLAN = Plan(
    records=240,
    zombie_records=60,
    kills=6,
    seed=6,
    single=(points.BETWEEN_SIDES_AND_PAIRS, points.AFTER_LOST_REPLY, points.INSERT_OUTLIVES),
    paired=(points.BETWEEN_INSERT_AND_COMMIT, points.IN_REBALANCE),
)


def test_nothing_is_lost_and_nothing_is_stored_twice_under_kills_and_beside_a_zombie() -> None:
    said: list[str] = []
    lines = chaos(PLAN, said.append)
    missed = [line.what for line in lines if line.is_ok is False]
    assert missed == [], "\n".join((*said, table_of(lines)))
    held = {line.what for line in lines if line.is_ok}
    # The run came to its end: each of these was counted.
    assert held >= {
        "SIGKILLs",
        "lost, of all records",
        "duplicated keys in pairs",
        "duplicated keys in views",
        "unaccounted records",
        "rollups that differ from the raw views",
        "replay calls wasted",
        "duplicated keys in side tables, once swept",
    }
