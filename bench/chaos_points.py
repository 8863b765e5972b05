"""The moments at which the chaos run kills: what to wait for, and which trap waits for it."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench.chaos_proxy import Moment, Seen, Trap

SIDE_TABLES = ("requests", "observations", "tokens", "positions")
_SCHEMA_WORDS = ("CREATE TABLE", "CREATE OR REPLACE VIEW", "ALTER TABLE")


def insert_of(*tables: str) -> Callable[[Seen], bool]:
    """Whether a request stores rows of a batch in one of the tables."""
    return lambda seen: seen.table in tables


def is_swap(seen: Seen) -> bool:
    """Whether a request swaps a day of a rollup in."""
    return "REPLACE PARTITION" in seen.text


class LaterInsert:
    """True at an insert into one of the tables, once some others have passed."""

    def __init__(self, tables: tuple[str, ...], passes: int) -> None:
        self._tables = tables
        self._passes = passes

    def __call__(self, seen: Seen) -> bool:
        """Count one request, and say whether it is the one."""
        is_insert = seen.table in self._tables
        self._passes -= is_insert
        return is_insert and self._passes < 0


class NthSchemaChange:
    """True at the n-th statement that changes the schema; those of the migration's lock do not count."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self, seen: Seen) -> bool:
        """Count one request, and say whether it is the one."""
        head = seen.text.lstrip().upper()
        is_change = any(word in head for word in _SCHEMA_WORDS) and "SCHEMA_LOCK" not in head
        self._left -= is_change and not seen.table
        return is_change and self._left <= 0


BETWEEN_INSERT_AND_COMMIT = "between insert and commit"
BETWEEN_SIDES_AND_PAIRS = "between side tables and pairs"
AFTER_LOST_REPLY = "after a lost reply to an insert"
INSERT_OUTLIVES = "with an insert that outlives it"
IN_SWAP = "in a rollup swap"
IN_MIGRATION = "in a migration"
IN_REBALANCE = "during a rebalance"
AT_RANDOM = "at random"

SINGLE = (BETWEEN_INSERT_AND_COMMIT, BETWEEN_SIDES_AND_PAIRS, AFTER_LOST_REPLY, INSERT_OUTLIVES, IN_SWAP)
PAIRED = (BETWEEN_INSERT_AND_COMMIT, BETWEEN_SIDES_AND_PAIRS, AFTER_LOST_REPLY, INSERT_OUTLIVES)


def trap_at(point: str, draw: random.Random) -> Trap:
    """A trap for the point; where it allows for several moments, one of them is drawn.

    The first inserts of a run may pass: work is then at every stage.
    """
    passes = draw.randint(0, 3)
    if point == BETWEEN_INSERT_AND_COMMIT:
        return Trap(LaterInsert((draw.choice(("pairs", "delivered_ranges")),), passes), "after")
    if point == BETWEEN_SIDES_AND_PAIRS:
        return Trap(LaterInsert((draw.choice(SIDE_TABLES),), passes), "after")
    if point == AFTER_LOST_REPLY:
        return Trap(LaterInsert(("pairs",), passes), _one(draw, "before", "after"), loses=1)
    if point == INSERT_OUTLIVES:
        return Trap(LaterInsert(("pairs", *SIDE_TABLES[:2]), passes), "during")
    if point == IN_SWAP:
        return Trap(is_swap, _one(draw, "before", "during", "after"))
    if point == IN_MIGRATION:
        return Trap(NthSchemaChange(draw.randint(2, 30)), _one(draw, "before", "during", "after"))
    raise ValueError(f"no trap for {point}")


def _one(draw: random.Random, *moments: Moment) -> Moment:
    return draw.choice(moments)


def order_of(points: tuple[str, ...], kills: int, random_share: float, draw: random.Random) -> list[str]:
    """That many points in random order: a share at random, the rest the chosen ones in turn."""
    at_random = round(kills * random_share)
    chosen = [points[number % len(points)] for number in range(kills - at_random)]
    order = chosen + [AT_RANDOM] * at_random
    draw.shuffle(order)
    return order
