"""Which stored requests are meant: found by a query of the views, kept as offsets, 8 bytes each."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from compare.row_values import milliseconds
from compare.store.client import Store
from compare.store.errors import StoreQueryError
from ingest.decode import CLOCK_TOLERANCE
from ingest.errors import FatalError

_NOT_PARSED = (62, 46, 47, 43, 53, 59, 386, 42, 6, 27, 36, 179, 184, 207)
"""Syntax, an unknown function or column, types that do not fit: the condition's fault."""
_REQUEST_COLUMNS = (
    "sent_at",
    "has_lone_surrogates",
    "served_engine",
    "served_engine_version",
    "served_weights_sha256",
    "served_config_hash",
    "source_format",
    "body",
    "production_status",
    "production_latency_ms",
    "production_body",
)
"""Columns of `requests_v1` that `pairs_v1` has not. `requests_v1.tags` is offered as `request_tags`."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What to run: requests mirrored in [`start`, `end`), UTC, and what else is asked of them."""

    start: datetime
    end: datetime
    where: str | None = None
    """A condition in ClickHouse's SQL on columns of `pairs_v1` and `requests_v1`."""
    route: str | None = None
    tenant: str | None = None
    verdict: str | None = None
    limit: int | None = None
    sample: float | None = None
    """The share that is taken, by hash of the request id."""


class Place(msgspec.Struct, frozen=True, order=True):
    """One partition of a topic, by the broker's id."""

    topic: str
    topic_id: str
    partition: int


class Selected(msgspec.Struct):
    """Offsets in rising order by place."""

    offsets: dict[Place, array[int]]

    def __len__(self) -> int:
        return sum(map(len, self.offsets.values()))


def other_experiments(store: Store, wanted: Wanted, experiment: str) -> list[tuple[str, int]]:
    """Return the experiments with pairs in the time, but for this one, with how many, the most first."""
    rows = store.query(
        "SELECT experiment, count() AS pairs FROM pairs_v1"
        f" WHERE {_TIME} AND experiment != {{experiment:String}}"
        " GROUP BY experiment ORDER BY pairs DESC, experiment",
        _times(wanted) | {"experiment": experiment},
    ).rows
    return [(str(name), int(count)) for name, count in rows]


def find_source(store: Store, wanted: Wanted, experiment: str, source: str | None) -> str:
    """Return the experiment whose requests are run: `source`, or the only other one with pairs in the time.

    Raises FatalError where there is none, or several and none was named.
    """
    others = other_experiments(store, wanted, experiment)
    between = f"between {wanted.start:%Y-%m-%d %H:%M:%S} and {wanted.end:%Y-%m-%d %H:%M:%S} UTC"
    named = ", ".join(f"{name} ({count} pairs)" for name, count in others)
    if source == experiment:
        raise FatalError(f"{experiment} is the new experiment: --source names the one that was run before")
    if source is not None:
        if source not in dict(others):
            raise FatalError(f"experiment {source} has no pairs {between}; there are: {named or 'none'}")
        return source
    if not others:
        raise FatalError(f"no experiment has pairs {between}")
    if len(others) > 1:
        raise FatalError(f"several experiments have pairs {between}: say --source, one of {named}")
    return others[0][0]


def select(store: Store, wanted: Wanted, source: str) -> Selected:
    """Find the requests of `source` that are wanted. `store` should be a reader's.

    Each position comes once, whichever of the source's candidates the condition holds for. Raises FatalError,
    one line, for a condition that is none.
    """
    sql, parameters = _query(wanted, source)
    try:
        if wanted.where is not None:
            # By itself: what is no whole expression shall not borrow the brackets around it.
            store.query(
                "SELECT formatQuerySingleLine(concat('SELECT ', {where:String}))", {"where": wanted.where}
            )
        rows = store.query(sql, parameters).rows
    except StoreQueryError as error:
        if wanted.where is not None and error.code in _NOT_PARSED:
            # Behind it ClickHouse says the whole query, which nobody has written.
            why = str(error).partition(". In scope ")[0]
            raise FatalError(
                f"--where {wanted.where!r} is no condition on pairs_v1 and requests_v1: {why}"
            ) from error
        raise
    found: dict[Place, array[int]] = {}
    for topic, topic_id, partition, offsets in rows:
        found[Place(str(topic), str(topic_id), int(partition))] = array("Q", sorted(offsets))
    return Selected(dict(sorted(found.items())))


_TIME = (
    "mirrored_at >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')"
    " AND mirrored_at < fromUnixTimestamp64Milli({end:Int64}, 'UTC')"
    " AND ingested_at >= fromUnixTimestamp64Milli({oldest:Int64}, 'UTC')"
)


def _times(wanted: Wanted) -> dict[str, Any]:
    # `mirrored_at` is within the tolerance of the first `ingested_at`, so no older day need be read.
    return {
        "start": milliseconds(wanted.start),
        "end": milliseconds(wanted.end),
        "oldest": milliseconds(wanted.start - CLOCK_TOLERANCE),
    }


def _query(wanted: Wanted, source: str) -> tuple[str, dict[str, Any]]:
    parameters = _times(wanted) | {"source": source}
    conditions = []
    for name in ("route", "tenant", "verdict"):
        value = getattr(wanted, name)
        if value is not None:
            conditions.append(f"{name} = {{{name}:String}}")
            parameters[name] = value
    if wanted.sample is not None:
        conditions.append(
            "cityHash64('gnomon replay', request_id) / 18446744073709551616. < {sample:Float64}"
        )
        parameters["sample"] = wanted.sample
    if wanted.where is not None:
        conditions.append(f"({wanted.where}\n)")
    order = "ORDER BY at, topic_id, `partition`, `offset`"
    limit = "" if wanted.limit is None else f"{order} LIMIT {wanted.limit:d}"
    columns = ", ".join(f"requests.{name} AS {name}" for name in _REQUEST_COLUMNS)
    # Requests may have left the store before their pairs did: Kafka may still have them.
    sql = f"""
        SELECT topic, topic_id, `partition`, groupArray(`offset`)
        FROM
        (
            SELECT topic, topic_id, `partition`, `offset`, any(mirrored_at) AS at
            FROM
            (
                SELECT pairs.*, requests.tags AS request_tags, {columns}
                FROM
                (
                    SELECT * FROM pairs_v1
                    WHERE experiment = {{source:String}} AND {_TIME}
                ) AS pairs
                LEFT JOIN
                (
                    SELECT topic_id, `partition`, `offset`, tags, {", ".join(_REQUEST_COLUMNS)}
                    FROM requests_v1 WHERE {_TIME}
                ) AS requests
                USING (topic_id, `partition`, `offset`)
            )
            WHERE {" AND ".join(conditions) or "1"}
            GROUP BY topic, topic_id, `partition`, `offset`
            {limit}
        )
        GROUP BY topic, topic_id, `partition`
    """
    return sql, parameters


def positions_of(place: Place, offsets: Sequence[int]) -> dict[str, Any]:
    """Return the parameters that name some offsets of a place in a query."""
    return {"topic_id": place.topic_id, "partition": place.partition, "offsets": list(offsets)}
