"""Reading what the detectors fold, from the views only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from compare.alerts.cursor import Cursor, Feed, PartitionKey
from compare.alerts.fold import Seen
from compare.alerts.series import FoldedPair
from compare.detectors.history import HISTORY_FAULTY
from compare.row_values import milliseconds
from compare.store.client import Store

MAX_PAIRS = 50_000
"""Pairs read for one fold, over all partitions: bounds memory while a backlog is caught up."""

COUNTED = f"verdict != 'unscored' AND mode != 'mirrored' AND NOT has(tags, '{HISTORY_FAULTY}')"
"""Pairs that may move a rate. In `mirrored` mode production's answer stands in for the candidate's, and
such pairs need a noise floor of their own before any rate may be stated. A request that holds a faulty
answer already makes either model go on with it."""


class Settled(msgspec.Struct, frozen=True):
    """What the delivered ranges say of one partition; offsets are half open."""

    topic_id: str
    partition: int
    first_offset: int
    last_range_offset: int
    end_offset: int
    newest_ms: int


def read_feeds(
    store: Store, experiment: str, candidate: str, cursors: Mapping[PartitionKey, Cursor]
) -> tuple[list[Feed], bool]:
    """Every partition's next pairs, and whether more are left for another fold."""
    partitions = _settled(store, experiment)
    limit = max(MAX_PAIRS // max(len(partitions), 1), 1)
    feeds = []
    is_cut = False
    for settled in partitions:
        key = (settled.topic_id, settled.partition)
        cursor = cursors.get(key)
        if cursor is None:
            first = settled.first_offset
            cursor = Cursor(settled.topic_id, settled.partition, first, hour_offset=first)
        stored = _pairs(store, experiment, candidate, cursor, limit)
        end = max(settled.end_offset, cursor.next_offset)
        pairs = tuple(pair for pair in stored if pair.offset < end)
        is_behind = len(pairs) < len(stored)
        if len(stored) == limit and not is_behind:
            is_cut = is_behind = True
            end = max(pairs[-1].offset + 1, cursor.next_offset)
        undecided = _undecided(store, experiment, settled) if end > settled.last_range_offset else ()
        feeds.append(Feed(cursor, pairs, end, is_behind, settled.newest_ms, undecided))
    return feeds, is_cut


def _settled(store: Store, experiment: str) -> list[Settled]:
    rows = store.query(
        "SELECT topic_id, `partition`, min(first_offset), max(first_offset), max(end_offset),"
        " max(ingested_at) FROM delivered_ranges_v1 WHERE experiment = {experiment:String}"
        " GROUP BY topic_id, `partition` ORDER BY topic_id, `partition`",
        {"experiment": experiment},
    ).rows
    return [
        Settled(topic_id, partition, first, last, end, milliseconds(newest))
        for topic_id, partition, first, last, end, newest in rows
    ]


def _pairs(store: Store, experiment: str, candidate: str, cursor: Cursor, limit: int) -> list[FoldedPair]:
    rows = store.query(
        "SELECT topic_id, `partition`, `offset`, mirrored_at, request_hash, route,"
        f" {COUNTED} AS is_counted, is_regression, is_candidate_only_fault, is_reference_only_fault"
        " FROM pairs_v1 WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
        " AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32}"
        " AND (`offset` >= {next_offset:UInt64} OR `offset` IN {open_offsets:Array(UInt64)})"
        " ORDER BY `offset` LIMIT {limit:UInt64}",
        {
            "experiment": experiment,
            "candidate": candidate,
            "topic_id": cursor.topic_id,
            "partition": cursor.partition,
            "next_offset": cursor.next_offset,
            "open_offsets": list(cursor.open_offsets),
            "limit": limit,
        },
    ).rows
    return [
        FoldedPair(
            topic_id=topic_id,
            partition=partition,
            offset=offset,
            mirrored_ms=milliseconds(mirrored_at),
            request_hash=request_hash,
            route=route,
            is_counted=bool(is_counted),
            is_regression=bool(is_regression),
            is_candidate_only_fault=bool(candidate_only),
            is_reference_only_fault=bool(reference_only),
        )
        for (
            topic_id,
            partition,
            offset,
            mirrored_at,
            request_hash,
            route,
            is_counted,
            is_regression,
            candidate_only,
            reference_only,
        ) in rows
    ]


def _undecided(store: Store, experiment: str, settled: Settled) -> tuple[int, ...]:
    """Offsets of the last range without a pair: delivered again, any of them may become one.

    Read after the pairs, so that a pair that is stored in between counts as still to come.
    """
    rows = store.query(
        "SELECT `offset` FROM outcomes_v1 WHERE experiment = {experiment:String}"
        " AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32}"
        " AND `offset` >= {start:UInt64} AND `offset` < {end:UInt64} ORDER BY `offset`",
        {
            "experiment": experiment,
            "topic_id": settled.topic_id,
            "partition": settled.partition,
            "start": settled.last_range_offset,
            "end": settled.end_offset,
        },
    ).rows
    return tuple(int(row[0]) for row in rows)


def read_seen(store: Store, experiment: str, candidate: str, cursors: Mapping[PartitionKey, Cursor]) -> Seen:
    """What was counted in the current hour of the fold clock: read back, not kept a second time."""
    seen: Seen = set()
    for cursor in cursors.values():
        if cursor.hour_offset >= cursor.next_offset:
            continue
        parameters: dict[str, Any] = {
            "experiment": experiment,
            "candidate": candidate,
            "topic_id": cursor.topic_id,
            "partition": cursor.partition,
            "start": cursor.hour_offset,
            "end": cursor.next_offset,
            "open_offsets": list(cursor.open_offsets),
        }
        rows = store.query(
            "SELECT DISTINCT route, request_hash FROM pairs_v1"
            " WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
            " AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32}"
            " AND `offset` >= {start:UInt64} AND `offset` < {end:UInt64}"
            f" AND `offset` NOT IN {{open_offsets:Array(UInt64)}} AND {COUNTED}",
            parameters,
        ).rows
        for route, request_hash in rows:
            seen.add(("experiment", "", request_hash))
            if route:
                seen.add(("route", route, request_hash))
    return seen
