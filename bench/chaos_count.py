"""The count at the end of the chaos run, from what was produced, the raw tables, the views and the calls."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bench.chaos_endpoints import Call
from bench.chaos_kills import Snapshot
from bench.chaos_service import BATCH_PAIRS, COMPARE_BACKLOG, MAX_IN_FLIGHT
from bench.chaos_world import Position
from compare.store.client import Store

_PLACE = "topic_id, partition, offset"
KEYS = {
    "pairs": f"experiment, candidate, {_PLACE}",
    "outcomes": f"experiment, {_PLACE}",
    "requests": _PLACE,
    "observations": f"experiment, role, endpoint_name, {_PLACE}",
    "tokens": f"experiment, role, endpoint_name, {_PLACE}",
    "positions": f"experiment, candidate, {_PLACE}",
    "findings": f"experiment, candidate, {_PLACE}",
    "noise_pairs": f"experiment, candidate, side, {_PLACE}",
    "forced_pairs": f"experiment, candidate, {_PLACE}",
    "dead_letters": f"experiment, {_PLACE}, source",
    "delivered_ranges": "experiment, consumer_group, topic_id, partition, first_offset",
}
ENDS = ("pairs", "outcomes")
"""The tables whose rows end a record. Those beside them may be written again after a kill between the two,
and are then swept; a range that is delivered again replaces its predecessor."""
SIDES = ("requests", "observations", "tokens", "positions", "findings")
JOINED = ("observations", "tokens", "positions", "findings")
"""Side tables that name the attempt which wrote them."""

CALLS_A_RECORD = 2
WASTED_A_KILL = CALLS_A_RECORD * (MAX_IN_FLIGHT + COMPARE_BACKLOG + 2 * BATCH_PAIRS)
"""Calls of the records that a service holds at most: at the endpoints, being compared, in the queue before
the batch, and in the batch."""


class Line(msgspec.Struct, frozen=True):
    """One line of the table. `is_ok` is None for what is only told."""

    what: str
    value: str
    wanted: str = ""
    is_ok: bool | None = None


def exactly(what: str, value: int, wanted: int) -> Line:
    """A line for a number that must be what it must be."""
    return Line(what, f"{value:,}", f"{wanted:,}", value == wanted)


def lost(store: Store, produced: Mapping[Position, str]) -> list[str]:
    """Request ids that Kafka took and that have no outcome in any view."""
    sql = "SELECT partition, offset FROM {} WHERE experiment = 'chaos'"
    found = {
        (int(partition), int(offset))
        for view in ("pairs_v1", "outcomes_v1")
        for partition, offset in store.query(sql.format(view))
    }
    return [name for position, name in produced.items() if position not in found]


def duplicates(store: Store, table: str) -> int:
    """Rows beyond the first of their key, in the raw table as it was inserted."""
    (row,) = store.query(f"SELECT count() - uniqExact({KEYS[table]}) FROM {table}").rows
    return int(row[0])


def duplicates_in_views(store: Store) -> int:
    """Rows beyond the first of their key, over all views of the raw tables."""
    total = 0
    for table, key in KEYS.items():
        # A pair's findings are one row of the table, and one each of the view.
        key = f"{key}, finding_number" if table == "findings" else key
        (row,) = store.query(f"SELECT count() - uniqExact({key}) FROM {table}_v1").rows
        total += int(row[0])
    return total


def with_two_outcomes(store: Store) -> int:
    """Positions that have both a pair and another outcome."""
    (row,) = store.query(
        f"SELECT count() FROM (SELECT DISTINCT {_PLACE} FROM outcomes"
        f" WHERE ({_PLACE}) IN (SELECT {_PLACE} FROM pairs))"
    ).rows
    return int(row[0])


def orphans(store: Store) -> int:
    """Rows of side tables of attempts that have no pair."""
    total = 0
    for table in JOINED:
        (row,) = store.query(
            f"SELECT count() FROM {table} WHERE attempt_id NOT IN (SELECT attempt_id FROM pairs)"
        ).rows
        total += int(row[0])
    return total


def wait_for_deletes(store: Store, seconds: float = 120.0) -> None:
    """Wait until what was deleted is gone: the sweeper does not wait for it itself."""
    deadline = time.monotonic() + seconds
    pending = "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done"
    while store.query(pending).rows != [(0,)] and time.monotonic() < deadline:
        time.sleep(0.2)


def unaccounted(store: Store) -> tuple[int, int]:
    """The consumed and the unaccounted records, as the view has them.

    At the end nothing is under way: what is stored ahead of its range then is a surplus.
    """
    rows = store.query("SELECT sum(consumed), sum(abs(unaccounted) + stored_ahead) FROM accounting_v1").rows
    return int(rows[0][0]), int(rows[0][1])


_MADE = {
    "pairs": "count()",
    "regressions": "countIf(is_regression)",
    "match_pairs": "countIf(verdict = 'match')",
    "exact_pairs": "countIf(exact_match = 1)",
    "edit_similarity_pairs": "count(edit_similarity)",
    "round(edit_similarity_mean, 4)": "round(avg(toFloat64(edit_similarity)), 4)",
    "round(candidate_total_ms_mean, 1)": "round(avg(toFloat64(candidate_total_ms)), 1)",
}
_SLICES = ("all", "route", "kind", "language", "served_model", "verdict")
_RANK_OFF_BY = 0.02


def rollups_differ(store: Store) -> str:
    """Where the rollups differ from what is counted from the raw rows here; empty where they do not.

    The raw rows are collapsed by their version, not by FINAL: the one thing counted twice would show.
    """
    latest = f"(SELECT * FROM pairs ORDER BY version DESC LIMIT 1 BY {KEYS['pairs']})"
    for name in _SLICES:
        value = "''" if name == "all" else f"toString({name})"
        raw = store.query(
            f"SELECT toStartOfHour(mirrored_at) AS hour, {value} AS value, {', '.join(_MADE.values())}"
            f" FROM {latest} GROUP BY hour, value ORDER BY hour, value"
        ).rows
        rolled = store.query(
            f"SELECT hour, value, {', '.join(_MADE)} FROM rollup_hourly_v1 WHERE dimension = '{name}'"
            " ORDER BY hour, value"
        ).rows
        if raw != rolled:
            return f"{name}: raw {_first_not_in(raw, rolled)}, rolled up {_first_not_in(rolled, raw)}"
    raw = store.query(
        f"SELECT toStartOfMinute(ingested_at) AS minute, verdict, count() FROM {latest}"
        " GROUP BY minute, verdict ORDER BY ALL"
    ).rows
    rolled = store.query(
        "SELECT minute, reason, sum(records) FROM rollup_minutes_v1 WHERE kind = 'compared'"
        " GROUP BY minute, reason ORDER BY ALL"
    ).rows
    if raw != rolled:
        return f"minutes: raw {_first_not_in(raw, rolled)}, rolled up {_first_not_in(rolled, raw)}"
    rank = "countIf(candidate_total_ms <= candidate_total_ms_p95) / count(candidate_total_ms)"
    (row,) = store.query(
        f"SELECT {rank}, count(candidate_total_ms) FROM {latest} AS raw INNER JOIN"
        " (SELECT hour, candidate_total_ms_p95 FROM rollup_hourly_v1 WHERE dimension = 'all') AS rolled"
        " ON toStartOfHour(raw.mirrored_at) = rolled.hour"
    ).rows
    return "" if abs(row[0] - 0.95) < _RANK_OFF_BY else f"p95 of candidate_total_ms has rank {row}"


def _first_not_in(some: Sequence[tuple[object, ...]], others: Sequence[tuple[object, ...]]) -> str:
    return str(next((row for row in some if row not in others), "nothing more"))


def schema_of(store: Store) -> set[tuple[object, ...]]:
    """Every column of every table and view but the leases."""
    sql = (
        "SELECT table, name, type, default_kind, compression_codec FROM system.columns"
        " WHERE database = currentDatabase()"
        " AND NOT match(table, '^(schema_lock|[a-z]+_lease_)')"
        " AND position(table, '_staging_') = 0"
    )
    return {tuple(row) for row in store.query(sql)}


def wasted(calls: Iterable[Call]) -> int:
    """Calls beyond one set a record: those of runs before the last that asked, and in that one those after
    an answer that was whole. (The set itself may be several calls: a client tries again after a fault.)
    """
    by_record: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in sorted(calls, key=lambda call: call.at):
        by_record[call.endpoint, call.record].append(call)
    total = 0
    for mine in by_record.values():
        own = [call for call in mine if call.run == mine[-1].run]
        answered = next((n for n, call in enumerate(own) if call.ended == "ok"), len(own))
        total += len(mine) - len(own) + len(own[answered + 1 :])
    return total


def asked_though_stored(
    calls: Iterable[Call], snapshots: Sequence[Snapshot], produced: Mapping[Position, str]
) -> int:
    """Calls for records that were seen in the store before the call came."""
    since: dict[str, float] = {}
    for snapshot in snapshots:
        for position in snapshot.stored:
            if position in produced:
                since.setdefault(produced[position], snapshot.at)
    return sum(call.at > since.get(call.record, float("inf")) for call in calls)


def faults_of(calls: Iterable[Call]) -> str:
    """How the calls ended, the most frequent first."""
    ended = Counter(call.ended for call in calls)
    return ", ".join(f"{count:,} {name}" for name, count in ended.most_common())
