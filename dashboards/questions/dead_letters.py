"""The dead letters: how many and why, the newest, and one with its bytes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pandas as pd

from dashboards.asked import Asked, between, frame

MOST_LETTERS = 50
SHOWN_BYTES = 4096

_EXPERIMENT = "experiment = {experiment:String}"


class LetterKey(msgspec.Struct, frozen=True):
    """Which dead letter."""

    topic_id: str
    partition: int
    offset: int
    source: str


def counts(asked: Asked, experiment: str, start: datetime | None, end: datetime | None) -> pd.DataFrame:
    """reason, records, newest_at (UTC): of what was taken up from `start` on and before `end`, most first."""
    within, bounds = between("ingested_at", start, end)
    return frame(
        asked,
        "SELECT reason, count() AS records, max(ingested_at) AS newest_at FROM outcomes_v1"
        f" WHERE {_EXPERIMENT} AND kind = 'dead_letter'{within}"
        " GROUP BY reason ORDER BY records DESC, reason",
        {"experiment": experiment, **bounds},
    )


def newest(
    asked: Asked,
    experiment: str,
    start: datetime | None,
    end: datetime | None,
    reason: str = "",
    *,
    with_text: bool = True,
) -> pd.DataFrame:
    """The newest MOST_LETTERS: ingested_at (UTC), topic, topic_id, partition, offset, why; `with_text` also
    source, schema_guess, detail, request_id, is_redacted, replayed_at.

    Without it no view with texts is read: the letters are those records that the accounting counts, without
    rows that the store refused.
    """
    view, more, only = "outcomes_v1", "", " AND kind = 'dead_letter'"
    if with_text:
        view, only = "dead_letters_v1", ""
        more = ", source, schema_guess, detail, request_id, is_redacted, replayed_at"
    within, bounds = between(f"{view}.ingested_at", start, end)
    if reason:
        within += f" AND {view}.reason = {{reason:String}}"
        bounds["reason"] = reason
    return frame(
        asked,
        f"SELECT ingested_at, topic, topic_id, `partition`, `offset`, {view}.reason AS why{more} FROM {view}"
        f" WHERE {_EXPERIMENT}{only}{within}"
        " ORDER BY ingested_at DESC, topic_id, `partition`, `offset` LIMIT {most:UInt32}",
        {"experiment": experiment, **bounds, "most": MOST_LETTERS},
    )


def bytes_of(asked: Asked, experiment: str, key: LetterKey) -> dict[str, Any] | None:
    """Value (its first SHOWN_BYTES), total_bytes (None: the record had no value), header_names; None if the
    letter is not stored any more.
    """
    rows = asked.query(
        "SELECT hex(substring(ifNull(value, ''), 1, {shown:UInt32})) AS value_hex,"
        " length(value) AS total_bytes, headers.name AS header_names"
        f" FROM dead_letters_v1 WHERE {_EXPERIMENT}"
        " AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32}"
        " AND `offset` = {offset:UInt64} AND source = {source:String}",
        {"experiment": experiment, "shown": SHOWN_BYTES, **msgspec.structs.asdict(key)},
    ).dicts()
    if not rows:
        return None
    found = rows[0]
    return {"value": bytes.fromhex(found.pop("value_hex")), **found}
