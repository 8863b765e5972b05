"""What the owner's port allows: how much, and which settings a reader may give."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from compare.store.day_pruning import PRUNES_DAYS, READS_KEYS_FIRST
from compare.store.port_errors import Refused

MIB = 1024 * 1024


class PortLimits(msgspec.Struct, frozen=True):
    """Queries at once and waiting, seconds, rows and bytes of memory a query.

    Readers and writers have slots of their own, so that readers never keep a writer out.
    `buffered_bytes` bounds an answer that cannot be streamed.
    """

    reader_queries: int = 4
    writer_queries: int = 8
    waiting: int = 64
    queue_seconds: float = 10.0
    send_seconds: float = 60.0
    reader_seconds: float = 300.0
    writer_seconds: float = 300.0
    reader_memory_bytes: int = 512 * MIB
    reader_rows: int = 50_000_000
    buffered_bytes: int = 64 * MIB
    writer_body_bytes: int = 256 * MIB
    reader_body_bytes: int = 16 * MIB

    def body_bytes(self, *, is_writer: bool) -> int:
        """The longest body as it comes; four times as much when decompressed."""
        return self.writer_body_bytes if is_writer else self.reader_body_bytes


_ALLOWED_PREFIXES = ("output_format_", "http_", "format_csv_", "format_tsv_", "format_display_")
_ALLOWED = frozenset(
    [
        "aggregate_functions_null_for_empty",
        "cancel_http_readonly_queries_on_client_close",
        "cast_keep_nullable",
        "cast_string_to_dynamic_use_inference",
        "date_time_input_format",
        "date_time_output_format",
        PRUNES_DAYS,
        READS_KEYS_FIRST,
        "enable_analyzer",
        "allow_experimental_analyzer",
        "extremes",
        "final",
        "group_by_use_nulls",
        "join_use_nulls",
        "limit",
        "max_block_size",
        "max_bytes_to_read",
        "max_execution_time",
        "max_memory_usage",
        "max_result_bytes",
        "max_result_rows",
        "max_rows_to_read",
        "max_threads",
        "offset",
        "prefer_column_name_to_alias",
        "read_overflow_mode",
        "result_overflow_mode",
        "session_timezone",
        "timeout_before_checking_execution_speed",
        "union_default_mode",
        "use_client_time_zone",
        "use_skip_indexes_if_final_exact_mode",
    ]
)
_NOT_ALLOWED = frozenset({"output_format_schema"})
"""It writes a file."""


def reader_settings(asked: Mapping[str, str], limits: PortLimits) -> dict[str, str]:
    """The settings of a reader's query: what it asked for, held within the limits.

    Raises Refused with code 164 for a setting that a reader may not give.
    """
    # The engine takes no setting from a view under `readonly = 1`.
    settings = {PRUNES_DAYS: "0", READS_KEYS_FIRST: "1"}
    for name, value in asked.items():
        if name == "readonly" and value in ("1", "2"):
            continue
        if name in _NOT_ALLOWED or not (name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)):
            raise Refused(
                164, "READONLY", f"Cannot modify '{name}' setting in readonly mode: a read-only token may not"
            )
        settings[name] = value
    ceilings = {
        "max_execution_time": limits.reader_seconds,
        "max_result_rows": limits.reader_rows,
        "max_memory_usage": limits.reader_memory_bytes,
    }
    for name, ceiling in ceilings.items():
        settings[name] = _held(name, settings.get(name, "0"), ceiling)
    # What groups or sorts by millions of keys spills to disk instead of failing. The engine counts what
    # reading takes too, some 40 MiB under FINAL: a lower threshold would spill every block.
    spill = str(limits.reader_memory_bytes // 2)
    return settings | {
        "max_bytes_before_external_group_by": spill,
        "max_bytes_before_external_sort": spill,
        "max_threads": settings.get("max_threads", str(reader_threads(limits))),
    }


def reader_threads(limits: PortLimits) -> int:
    """Threads of a reader's query that asks for no number: all readers at once keep the machine busy."""
    return max(1, (os.cpu_count() or 1) // limits.reader_queries)


def writer_settings(asked: Mapping[str, str], limits: PortLimits) -> dict[str, str]:
    """The settings of a writer's query: what it asked for, and a time limit if it gave none."""
    return {"max_execution_time": str(limits.writer_seconds), **asked}


def _held(name: str, asked: str, ceiling: float) -> str:
    try:
        value = float(asked)
    except ValueError as error:
        raise Refused(72, "CANNOT_PARSE_NUMBER", f"setting {name} is no number: {asked!r}") from error
    # 0 means no limit to the engine.
    return asked if 0 < value <= ceiling else f"{ceiling:g}" if ceiling < 1000 else str(int(ceiling))
