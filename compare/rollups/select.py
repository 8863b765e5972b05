"""The statements that fill the staging tables of a rebuild."""

from __future__ import annotations

from datetime import datetime

from compare.rollups.columns import DIMENSIONS, FAMILY_DIMENSIONS, aggregates
from compare.rollups.source import ONE_DAY, Hour, Keys, among, counts_on_day, not_replaced
from compare.rollups.source import Condition as Statement

HOUR_COLUMNS = (
    "day",
    "ingested_hour",
    "source_hash",
    "hour",
    "experiment",
    "candidate",
    "dimension",
    "value",
)
MAX_PAIRS = 500_000
"""Pairs aggregated by one statement: bounds its memory (docs/design/0006-store-layout.md)."""

WORST_ROWS = 200
"""Pairs of one hour, experiment, candidate, verdict, route and fault families in `rollup_worst`."""

_CELL = (
    "toStartOfHour(ingested_at)",
    "experiment",
    "candidate",
    "verdict",
    "route",
    "candidate_fault_families",
    "reference_fault_families",
)
_WORST_COLUMNS = (
    "experiment",
    "candidate",
    "verdict",
    "route",
    "is_regression",
    "severity",
    "candidate_fault_families",
    "reference_fault_families",
    "topic_id",
    "`partition`",
    "`offset`",
    "request_id",
    "mirrored_at",
    "kl_forced_mean_nats",
    "kl_prefix_mean_nats",
    "edit_similarity",
    "cosine_similarity",
    "divergence_position",
    "reference_total_ms",
    "candidate_total_ms",
)
WORST_FIRST = "severity DESC NULLS LAST, topic_id, `partition`, `offset`"
"""The order of pairs of one verdict in the explorer's list."""

_MINUTE_COLUMNS = "day, minute, experiment, candidate, kind, reason, records, lag_ms_sum, lag_ms_max"
_LAG = "dateDiff('millisecond', mirrored_at, ingested_at)"


def runs(hours: list[Hour], stale: set[datetime]) -> list[list[Hour]]:
    """The stale hours of a day in groups for one statement each: neighbours, and not too many pairs."""
    groups: list[list[Hour]] = [[]]
    for hour in hours:
        group = groups[-1]
        is_full = sum(one.pairs for one in group) + hour.pairs > MAX_PAIRS
        if group and (is_full or hour.start not in stale):
            groups.append(group := [])
        if hour.start in stale:
            group.append(hour)
    return [group for group in groups if group]


def fill_hours(staging: str, hours: list[Hour], settings: str) -> list[Statement]:
    """Two statements that aggregate the pairs of one run of hours into the staging table.

    They are bound to `day` as well. Rows that the run's own later hours replace are left out by FINAL,
    those that later hours replace by condition: it is why a run must be of neighbours.
    """
    rows = _rows_of(hours)
    names = ", ".join((*HOUR_COLUMNS, *aggregates()))
    made = ", ".join(f"{expression} AS made_{name}" for name, expression in aggregates().items())
    begin = f"INSERT INTO {staging} ({names}) SELECT {_made_from(hours)},"
    group = "toStartOfHour(ingested_at), toStartOfHour(mirrored_at), experiment, candidate"
    sets = ", ".join([f"({group})", *(f"({group}, {dimension})" for dimension in DIMENSIONS)])
    which = ", ".join(f"grouping({name}) = 0, '{name}'" for name in DIMENSIONS)
    value = ", ".join(f"grouping({name}) = 0, toString({name})" for name in DIMENSIONS)
    whole = (
        f"{begin} toStartOfHour(mirrored_at), experiment, candidate, multiIf({which}, 'all'),"
        f" multiIf({value}, ''), {made} FROM pairs_v1 WHERE {rows.sql}"
        f" GROUP BY GROUPING SETS ({sets}) SETTINGS {ONE_DAY}, {settings}"
    )
    pairs = ", ".join(f"arrayMap(v -> ('{dim}', v), {array})" for dim, array in FAMILY_DIMENSIONS.items())
    families = (
        f"{begin} toStartOfHour(mirrored_at), experiment, candidate, family.1, family.2, {made}"
        f" FROM pairs_v1 ARRAY JOIN arrayConcat({pairs}) AS family WHERE {rows.sql}"
        f" GROUP BY {group}, family.1, family.2 SETTINGS {ONE_DAY}, {settings}"
    )
    return [Statement(whole, rows.parameters), Statement(families, rows.parameters)]


def fill_worst(staging: str, hours: list[Hour], settings: str) -> list[Statement]:
    """The statement that puts the most severe pairs of one run of hours into the staging table."""
    rows = _rows_of(hours)
    columns = ", ".join(_WORST_COLUMNS)
    return [
        Statement(
            f"INSERT INTO {staging} (day, ingested_hour, source_hash, {columns})"
            f" SELECT {_made_from(hours)}, {columns} FROM pairs_v1 WHERE {rows.sql}"
            f" ORDER BY {WORST_FIRST} LIMIT {WORST_ROWS} BY {', '.join(_CELL)}"
            f" SETTINGS {ONE_DAY}, {settings}",
            rows.parameters,
        )
    ]


def _rows_of(hours: list[Hour]) -> Statement:
    """That a row of `pairs_v1` is of these hours and counts."""
    keys = [keys for hour in hours for keys in hour.keys]
    within = among(keys)
    end = "{last:DateTime('UTC')} + INTERVAL 1 HOUR"
    fresh = not_replaced("pairs", keys, f"ingested_at >= {end}")
    return Statement(
        "toDate(ingested_at) = {day:Date} AND ingested_at >= {first:DateTime('UTC')}"
        f" AND ingested_at < {end} AND ({within.sql}) AND {fresh.sql}",
        {**within.parameters, **fresh.parameters, "first": hours[0].start, "last": hours[-1].start},
    )


def _made_from(hours: list[Hour]) -> str:
    """The columns `day`, `ingested_hour` and `source_hash` of a row made of these hours."""
    starts = ", ".join(str(int(hour.start.timestamp())) for hour in hours)
    hashes = ", ".join(f"toUInt64({hour.source_hash})" for hour in hours)
    return (
        "{day:Date}, toStartOfHour(ingested_at) AS stored_hour,"
        f" transform(toUnixTimestamp(stored_hour), [{starts}], [{hashes}], toUInt64(0))"
    )


def fill_minutes(
    staging: str, pairs: list[Keys], outcomes: list[Keys], settings: str, *, has_later_days: bool
) -> list[Statement]:
    """Statements that count a whole day by minute into the staging table. They are bound to `day`."""
    statements = []
    for table, keys, candidate, kind, reason in (
        ("pairs", pairs, "candidate", "'compared'", "verdict"),
        ("outcomes", outcomes, "''", "kind", "reason"),
    ):
        if keys:
            counts = counts_on_day(table, keys, has_later_days=has_later_days)
            sql = (
                f"INSERT INTO {staging} ({_MINUTE_COLUMNS}) SELECT {{day:Date}},"
                f" toStartOfMinute(ingested_at) AS m, experiment, {candidate} AS c, {kind} AS k,"
                f" {reason} AS r, count(), sum({_LAG}), max({_LAG})"
                f" FROM {table} FINAL WHERE {counts.sql} GROUP BY m, experiment, c, k, r"
                f" SETTINGS {ONE_DAY}, {settings}"
            )
            statements.append(Statement(sql, counts.parameters))
    return statements
