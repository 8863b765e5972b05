"""Which stored pairs a verdict is about: the conditions and parameters that every query of it shares."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from compare.alerts.source import COUNTED
from compare.store.asked import Asked
from ingest.errors import SettingsError

CLASS = (
    "multiIf(`offset` >= marks.end, 'not_settled', verdict = 'unscored', 'unscored', mode = 'mirrored',"
    f" 'mirrored', {COUNTED}, 'counted', 'history_faulty')"
)
"""Why a pair is not counted, or `counted`. One above its partition's watermark is stored while a slower
neighbour before it is not: counted already, quick answers would come before slow ones, which are more often
faulty (see `compare.alerts.cursor`)."""

MARKS = (
    " LEFT JOIN (SELECT mark.1 AS topic_id, mark.2 AS `partition`, mark.3 AS end FROM"
    " (SELECT arrayJoin(arrayZip({mark_topics:Array(String)}, {mark_partitions:Array(UInt32)},"
    " {mark_ends:Array(UInt64)})) AS mark)) AS marks USING (topic_id, `partition`)"
)


class Scope(Struct, frozen=True):
    """One experiment and candidate, a range of `mirrored_at`, and the watermarks at the time of reading."""

    experiment: str
    candidate: str
    references: tuple[str, ...]
    since: datetime | None
    until: datetime | None
    marks: tuple[tuple[str, int, int], ...]

    @property
    def where(self) -> str:
        """The conditions for `pairs_v1` and views with the same columns."""
        return " WHERE experiment = {experiment:String} AND candidate = {candidate:String}" + self.within

    @property
    def within(self) -> str:
        """The range alone."""
        since = " AND mirrored_at >= {since:DateTime64(3, 'UTC')}" if self.since else ""
        return since + (" AND mirrored_at < {until:DateTime64(3, 'UTC')}" if self.until else "")

    @property
    def parameters(self) -> dict[str, Any]:
        """What the conditions and `MARKS` are bound to."""
        bound: dict[str, Any] = {
            "experiment": self.experiment,
            "candidate": self.candidate,
            "mark_topics": [topic_id for topic_id, _, _ in self.marks],
            "mark_partitions": [partition for _, partition, _ in self.marks],
            "mark_ends": [end for _, _, end in self.marks],
        }
        if self.since:
            bound["since"] = seconds(self.since)
        if self.until:
            bound["until"] = seconds(self.until)
        return bound


def find_scope(
    store: Asked, experiment: str, candidate: str | None, since: datetime | None, until: datetime | None
) -> Scope:
    """Find the candidate where it was not named, its references, and the watermarks.

    Raises SettingsError where there is no such experiment or candidate, or several candidates and none named.
    """
    candidate, references = find_candidate(store, experiment, candidate)
    marks = store.query(
        "SELECT topic_id, `partition`, max(end_offset) FROM delivered_ranges_v1"
        " WHERE experiment = {experiment:String} GROUP BY topic_id, `partition`"
        " ORDER BY topic_id, `partition`",
        {"experiment": experiment},
    ).rows
    return Scope(
        experiment,
        candidate,
        references,
        since,
        until,
        tuple((str(topic_id), int(partition), int(end)) for topic_id, partition, end in marks),
    )


def find_candidate(store: Asked, experiment: str, candidate: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the candidate, the only one where none is named, and the references that it was compared with.

    Raises SettingsError where there is no such experiment or candidate, or several candidates and none named.
    """
    rows = store.query(
        "SELECT candidate, groupUniqArray(toString(reference)) FROM pairs_v1"
        " WHERE experiment = {experiment:String} GROUP BY candidate ORDER BY candidate",
        {"experiment": experiment},
    ).rows
    references = {str(name): tuple(sorted(listed)) for name, listed in rows}
    if not references:
        known = [
            str(row[0]) for row in store.query("SELECT DISTINCT experiment FROM pairs_v1 ORDER BY experiment")
        ]
        raise SettingsError(
            f"no pairs of experiment {experiment!r}; this store has {', '.join(map(repr, known)) or 'none'}"
        )
    if candidate is None:
        if len(references) > 1:
            raise SettingsError(f"experiment {experiment!r} has candidates {', '.join(references)}: name one")
        (candidate,) = references
    if candidate not in references:
        raise SettingsError(
            f"experiment {experiment!r} has no candidate {candidate!r}; it has {', '.join(references)}"
        )
    return candidate, references[candidate]


def seconds(time: datetime) -> str:
    """A time as ClickHouse reads it for DateTime64(3, 'UTC') whatever the session's zone."""
    return f"{time.timestamp():.3f}"
