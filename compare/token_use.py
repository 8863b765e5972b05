"""What the endpoints computed, kept in the store so that a budget of a day outlives a restart.

The answers in `observations` would not do: forced scoring, records that failed and purged ones are not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime

from compare.row_values import microseconds
from compare.store.client import Store
from ingest.token_budget import TokenUse

_COLUMNS = (
    "experiment",
    "endpoint_name",
    "day",
    "run_id",
    "prompt_tokens",
    "completion_tokens",
    "estimated_tokens",
    "calls",
    "ingested_at",
    "version",
)


def save_use(store: Store, experiment: str, run_id: str, uses: Mapping[tuple[str, date], TokenUse]) -> None:
    """Store what a run counted until now, by endpoint and day. Raises what the store raises."""
    now = datetime.now(UTC)
    version = microseconds(now)
    rows = [
        (experiment, name, day, run_id, use.prompt, use.completion, use.estimated, use.calls, now, version)
        for (name, day), use in uses.items()
    ]
    if rows:
        store.insert("token_use", _COLUMNS, rows)


def used_by_others(store: Store, run_id: str, days: Iterable[date]) -> dict[str, dict[date, int]]:
    """Tokens of every run but `run_id`, of whichever experiment, by endpoint and day. Raises as the store."""
    rows = store.query(
        "SELECT endpoint_name, day, sum(prompt_tokens + completion_tokens) FROM token_use FINAL"
        " WHERE day IN {days:Array(Date)} AND run_id != {run_id:String} GROUP BY endpoint_name, day",
        {"days": sorted(days), "run_id": run_id},
    ).rows
    found: dict[str, dict[date, int]] = {}
    for name, day, tokens in rows:
        found.setdefault(str(name), {})[day] = int(tokens)
    return found
