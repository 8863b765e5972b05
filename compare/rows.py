"""A frozen batch as rows of the store, table by table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from compare.outcomes import Batch, DeliveredRange, OtherOutcome
from compare.pair_rows import as_they_are, pair_rows
from compare.redact_rows import RowRedactor
from compare.row_values import microseconds, text
from compare.side_rows import Row, position_columns
from ingest.shape_guess import guess_shape


class TableRows(NamedTuple):
    """Rows of one table, in the order of `columns`."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def rows_of(
    batch: Batch, stored_at: datetime | None = None, redactor: RowRedactor | None = None
) -> dict[str, TableRows]:
    """Every row that the batch makes, by table; tables without rows are left out.

    Each row goes through `redactor`, if there is one. `stored_at` (now, if not given) dates the
    delivered ranges. No text and no number of a record can make this raise; a score that has no column
    does (FatalError), for that is a defect.
    """
    now = stored_at or datetime.now(UTC)
    tables: dict[str, list[Row]] = {}
    seen: set[tuple[Any, ...]] = set()

    def put(table: str, row: Row, *, once: tuple[Any, ...] = ()) -> None:
        # What several candidates share is written once.
        if not once or (table, *once) not in seen:
            seen.add((table, *once))
            tables.setdefault(table, []).append(row)

    for compared in batch.pairs:
        for made in pair_rows(compared, redactor) if compared.rows is None else compared.rows.rows():
            put(made.table, made.values, once=made.once)
    for outcome in batch.others:
        rows = [("outcomes", outcome_row(batch.experiment, outcome))]
        if outcome.kind == "dead_letter":
            rows.append(("dead_letters", dead_letter_row(batch.experiment, outcome)))
        done = redactor.of_outcome(outcome, rows) if redactor else as_they_are(rows)
        for (table, _), row in zip(rows, done, strict=True):
            put(table, row)
    for delivered in batch.ranges:
        put("delivered_ranges", range_row(batch.experiment, delivered, now))
    return {name: _as_table(rows) for name, rows in tables.items()}


def outcome_row(experiment: str, outcome: OtherOutcome) -> Row:
    """One row of `outcomes`."""
    return {
        "experiment": experiment,
        **position_columns(outcome.position),
        "kind": outcome.kind,
        "reason": text(outcome.reason),
        "detail": text(outcome.detail),
        "request_id": text(outcome.request_id),
        "mirrored_at": outcome.mirrored_at,
        "ingested_at": outcome.ingested_at,
        "version": microseconds(outcome.ingested_at),
    }


def dead_letter_row(experiment: str, outcome: OtherOutcome) -> Row:
    """One row of `dead_letters`, with the record's bytes exactly as they came."""
    row, raw = outcome_row(experiment, outcome), outcome.raw
    del row["kind"]
    return {
        **row,
        "source": "record",
        "kafka_timestamp_ms": raw.timestamp_ms if raw else None,
        "key": raw.key if raw else None,
        "value": raw.value if raw else None,
        "headers": [(text(name), value) for name, value in raw.headers] if raw else [],
        "schema_guess": guess_shape(raw.value) if raw else "",
        "replayed_at": None,
    }


def range_row(experiment: str, delivered: DeliveredRange, now: datetime) -> Row:
    """One row of `delivered_ranges`."""
    return {
        "experiment": experiment,
        "consumer_group": text(delivered.group),
        "topic": text(delivered.topic),
        "topic_id": text(delivered.topic_id),
        "partition": delivered.partition,
        "first_offset": delivered.first_offset,
        "end_offset": delivered.end_offset,
        "records": delivered.records,
        "lost_retention": delivered.lost,
        "ingested_at": now,
        "version": delivered.version or microseconds(now),
    }


def _as_table(rows: list[Row]) -> TableRows:
    columns = tuple(rows[0])
    return TableRows(columns, [tuple(row[name] for name in columns) for row in rows])
