"""Reading what the detectors fold, from the views only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from compare.alerts.chunk import Seen
from compare.alerts.cursor import Cursor, Feed, PartitionKey
from compare.alerts.metrics import DIMENSIONS
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

ACCOUNTED = "reason NOT IN ('sampled_out', 'purged')"
"""Outcomes that a rate of accounting counts: what is left out by the sampling settings was never meant to be
compared, and a purge says nothing of the service."""

SLICES = "[" + ", ".join(f"toString({name})" for name in DIMENSIONS[1:]) + "]"

SELECTED = f"""
        toString(request_hash) AS request_hash, {SLICES} AS slices, {COUNTED} AS is_counted,
        is_regression, is_candidate_only_fault, is_reference_only_fault, cosine_similarity,
        if(reference_is_schema_valid = 1, candidate_is_schema_valid, NULL) AS schema_validity,
        top1_agreement_forced_ratio, kl_forced_mean_nats, latency_ratio"""
"""What a pair brings to the metrics. A schema that the reference breaks too says nothing of the candidate."""

_PARTITION = (
    "experiment = {experiment:String} AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32}"
)
_PAIRS = f"""
        SELECT topic_id, `partition`, `offset`, mirrored_at,
            if(verdict = 'unscored', 'unscored', 'pair') AS outcome, {SELECTED}, 0 AS is_outcome
        FROM pairs_v1
        WHERE candidate = {{candidate:String}}"""
_OUTCOMES = f"""
        SELECT topic_id, `partition`, `offset`, mirrored_at, toString(kind), '', [], false, false, false,
            false, NULL, NULL, NULL, NULL, NULL, 1
        FROM outcomes_v1
        WHERE {ACCOUNTED}"""
_RECORDS = f"""
    SELECT * EXCEPT is_outcome FROM
    ({_PAIRS} AND {_PARTITION}
          AND (`offset` >= {{next_offset:UInt64}} OR `offset` IN {{open_offsets:Array(UInt64)}})
        ORDER BY `offset` LIMIT {{limit:UInt64}}
        UNION ALL{_OUTCOMES} AND {_PARTITION} AND `offset` >= {{next_offset:UInt64}}
        ORDER BY `offset` LIMIT {{limit:UInt64}}
    )
    ORDER BY `offset`, is_outcome LIMIT {{limit:UInt64}}"""

_IN_WINDOW = """experiment = {experiment:String}
          AND mirrored_at BETWEEN {start:DateTime64(3, 'UTC')} AND {end:DateTime64(3, 'UTC')}
          AND (mirrored_at, topic_id, `partition`, `offset`)
            > ({after:DateTime64(3, 'UTC')}, {topic_id:String}, {partition:UInt32}, {offset:UInt64})
        ORDER BY mirrored_at, topic_id, `partition`, `offset` LIMIT {limit:UInt64}"""
_WINDOW = f"""
    SELECT * EXCEPT is_outcome FROM
    ({_PAIRS} AND {_IN_WINDOW}
        UNION ALL{_OUTCOMES} AND {_IN_WINDOW}
    )
    ORDER BY mirrored_at, topic_id, `partition`, `offset`, is_outcome LIMIT {{limit:UInt64}}"""


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
    partitions = read_settled(store, experiment)
    limit = max(MAX_PAIRS // max(len(partitions), 1), 1)
    feeds = []
    for settled in partitions:
        key = (settled.topic_id, settled.partition)
        cursor = cursors.get(key)
        if cursor is None:
            first = settled.first_offset
            cursor = Cursor(settled.topic_id, settled.partition, first, hour_offset=first)
        end = max(settled.end_offset, cursor.next_offset)
        if end == cursor.next_offset and not cursor.open_offsets:
            # At rest, as most partitions are at most times: asked for without the scores of a record.
            is_behind = _has_more(store, experiment, candidate, cursor)
            feeds.append(Feed(cursor, (), end, is_behind, settled.newest_ms))
            continue
        stored = _records(store, experiment, candidate, cursor, limit)
        pairs = tuple(pair for pair in stored if pair.offset < end)
        is_behind = len(pairs) < len(stored)
        is_cut = len(stored) == limit and not is_behind
        if is_cut:
            is_behind = True
            end = max(pairs[-1].offset + 1, cursor.next_offset)
        undecided = _undecided(store, experiment, settled) if end > settled.last_range_offset else ()
        feeds.append(Feed(cursor, pairs, end, is_behind, settled.newest_ms, undecided, is_cut))
    return feeds, any(feed.is_cut for feed in feeds)


def read_settled(store: Store, experiment: str) -> list[Settled]:
    """Every partition of which a range is stored. Raises what the store raises."""
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


def _records(store: Store, experiment: str, candidate: str, cursor: Cursor, limit: int) -> list[FoldedPair]:
    """The next pairs of a partition, and the records that became none, in the order of their offsets."""
    rows = store.query(
        _RECORDS,
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
    return _folded(rows)


def read_window(
    store: Store, experiment: str, candidate: str, start_ms: int, end_ms: int
) -> Iterator[list[FoldedPair]]:
    """The records mirrored in this time, both ends included, in the order of time and position, in pages."""
    after: tuple[int, str, int, int] = (0, "", 0, 0)
    while True:
        at_ms, topic_id, partition, offset = after
        rows = store.query(
            _WINDOW,
            {
                "experiment": experiment,
                "candidate": candidate,
                "start": f"{start_ms / 1000:.3f}",
                "end": f"{end_ms / 1000:.3f}",
                "after": f"{at_ms / 1000:.3f}",
                "topic_id": topic_id,
                "partition": partition,
                "offset": offset,
                "limit": MAX_PAIRS,
            },
        ).rows
        if not rows:
            return
        page = _folded(rows)
        yield page
        last = page[-1]
        after = (last.mirrored_ms, last.topic_id, last.partition, last.offset)


def _folded(rows: Sequence[tuple[Any, ...]]) -> list[FoldedPair]:
    # Most pairs share their slices with many others: each combination is kept once.
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    records: list[FoldedPair] = []
    place: tuple[str, int, int] | None = None
    for topic_id, partition, offset, at, outcome, request_hash, slices, counted, *values in rows:
        if place == (topic_id, partition, offset):
            # Its failure, from before it was delivered again and compared.
            continue
        place = (topic_id, partition, offset)
        worse, only, other, cosine, schema, agreement, kl, latency = values
        combination = tuple(slices)
        records.append(
            FoldedPair(
                topic_id=topic_id,
                partition=partition,
                offset=offset,
                mirrored_ms=milliseconds(at),
                outcome=outcome,
                request_hash=request_hash,
                slices=shared.setdefault(combination, combination),
                is_counted=bool(counted),
                is_regression=bool(worse),
                is_candidate_only_fault=bool(only),
                is_reference_only_fault=bool(other),
                cosine_similarity=cosine,
                schema_validity=schema,
                top1_agreement_forced=agreement,
                kl_forced=kl,
                latency_ratio=latency,
            )
        )
    return records


def _has_more(store: Store, experiment: str, candidate: str, cursor: Cursor) -> bool:
    """Whether a record is stored at or above the cursor."""
    rows = store.query(
        f"SELECT 1 FROM pairs_v1 WHERE {_PARTITION} AND candidate = {{candidate:String}}"
        " AND `offset` >= {next_offset:UInt64} LIMIT 1"
        f" UNION ALL SELECT 1 FROM outcomes_v1 WHERE {_PARTITION} AND {ACCOUNTED}"
        " AND `offset` >= {next_offset:UInt64} LIMIT 1",
        {
            "experiment": experiment,
            "candidate": candidate,
            "topic_id": cursor.topic_id,
            "partition": cursor.partition,
            "next_offset": cursor.next_offset,
        },
    ).rows
    return bool(rows)


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
    found: dict[str, set[tuple[str, ...]]] = {}
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
            f"SELECT DISTINCT toString(request_hash), {SLICES} FROM pairs_v1"
            f" WHERE {_PARTITION} AND candidate = {{candidate:String}}"
            " AND `offset` >= {start:UInt64} AND `offset` < {end:UInt64}"
            f" AND `offset` NOT IN {{open_offsets:Array(UInt64)}} AND {COUNTED}",
            parameters,
        ).rows
        for request_hash, values in rows:
            found.setdefault(request_hash, set()).add(tuple(values))
    return {request_hash: tuple(sorted(slices)) for request_hash, slices in found.items()}
