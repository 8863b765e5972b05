"""Writes a frozen batch until it is stored: side tables first, pairs last, ranges last of all."""

from __future__ import annotations

import hashlib
import logging
import random
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from compare.outcomes import Batch
from compare.redact_rows import RowRedactor
from compare.rows import TableRows, rows_of
from compare.store.native_columns import as_bytes, plain
from ingest.errors import DeadLetterError, FatalError, RetryError
from ingest.redact import Redactor

# A pair's row is the sign that all else about it is stored, and a range's that all its pairs are.
WRITE_ORDER = (
    "requests",
    "observations",
    "tokens",
    "positions",
    "findings",
    "noise_pairs",
    "forced_pairs",
    "reference_answers",
    "dead_letters",
    "outcomes",
    "pairs",
    "delivered_ranges",
)

_log = logging.getLogger(__name__)


class Inserts(Protocol):
    """The part of `compare.store.client.Store` that writing needs."""

    def insert_columns(  # noqa: D102
        self,
        table: str,
        columns: Mapping[str, Sequence[Any]],
        *,
        dedup_token: str | None = None,
        query_id: str | None = None,
    ) -> None: ...


class RefusedRow(msgspec.Struct, frozen=True):
    """A row that the store can never take. It is kept in `dead_letters` as `store_refused`."""

    table: str
    topic_id: str
    partition: int
    offset: int
    message: str


class Part(msgspec.Struct, frozen=True):
    """Rows of one table as columns of the same length, and as they are sent at every attempt."""

    table: str
    columns: dict[str, Sequence[Any]]

    @classmethod
    def of(cls, table: str, content: TableRows) -> Part:
        """All rows of the table, turned once."""
        return cls(table, dict(zip(content.columns, zip(*content.rows, strict=True), strict=True)))

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def between(self, start: int, end: int) -> Part:
        """The rows from `start` to before `end`."""
        return Part(self.table, {name: values[start:end] for name, values in self.columns.items()})

    def token(self) -> str:
        """Hex SHA-256 of the table, the columns and every value, positions among them."""
        digest = hashlib.sha256(msgspec.msgpack.encode((self.table, tuple(self.columns))))
        # Row by row: a copy of one large prompt at a time, not of all.
        for row in zip(*self.columns.values(), strict=True):
            digest.update(msgspec.msgpack.encode(row, enc_hook=as_bytes))
        return digest.hexdigest()


class WriteResult(msgspec.Struct, frozen=True):
    """What was stored, by table; what was refused; how often an insert was tried again.

    A refused row of `pairs` ends its record as a dead letter; one of a side table leaves the pair.
    """

    rows: dict[str, int]
    refused: tuple[RefusedRow, ...]
    retries: int


class Writer:
    """Stores batches. Blocks; one thread at a time. `stop` ends retries, not inserts."""

    def __init__(
        self,
        store: Inserts,
        stop: threading.Event,
        *,
        group: str = "gnomon",
        redactor: Redactor | None = None,
        first_wait_s: float = 0.2,
        longest_wait_s: float = 30.0,
    ) -> None:
        """`group` is the consumer group: it begins every query id, so that inserts can be found.

        Rows go through `redactor` before they are sent.
        """
        self._store = store
        self._stop = stop
        self._redactor = RowRedactor(redactor) if redactor else None
        self._group = group
        self._first_wait_s = first_wait_s
        self._longest_wait_s = longest_wait_s
        self._retries = 0
        self._away_since: float | None = None

    @property
    def away_s(self) -> float:
        """Seconds for which the store has refused the insert that is under way; 0 while it takes them."""
        since = self._away_since
        return 0.0 if since is None else time.monotonic() - since

    def write(self, batch: Batch) -> WriteResult:
        """Store the whole batch, however long it takes; storing it again changes nothing.

        Its rows are made once, and every attempt sends the same ones under the same token. Raises
        RetryError only if `stop` is set while the store is away, and FatalError if the store
        refuses for good, or refuses a dead letter: nothing may be committed then.
        """
        self._retries = 0
        tables = rows_of(batch, redactor=self._redactor)
        stored = {table: len(tables[table].rows) for table in WRITE_ORDER if table in tables}
        refused: list[RefusedRow] = []
        for table in stored:
            # Let go of as it is stored: large prompts are in two tables.
            refused += self._write_table(batch.experiment, Part.of(table, tables.pop(table)))
        for row in refused:
            stored[row.table] -= 1
        return WriteResult(stored, tuple(refused), self._retries)

    def _write_table(self, experiment: str, whole: Part) -> list[RefusedRow]:
        """Insert, halving what the store refuses until the bad rows stand alone; keep those."""
        waiting = [whole]
        refused: list[RefusedRow] = []
        while waiting:
            part = waiting.pop()
            try:
                self._insert(part)
            except DeadLetterError as error:
                if len(part) > 1:
                    middle = len(part) // 2
                    waiting.append(part.between(middle, len(part)))
                    waiting.append(part.between(0, middle))
                    continue
                refused.append(self._keep_refused(experiment, part, error))
        return refused

    def _keep_refused(self, experiment: str, part: Part, error: DeadLetterError) -> RefusedRow:
        table = part.table
        row = {name: plain(value) for name, (value,) in part.columns.items()}
        offset = row["offset"] if "offset" in row else row["first_offset"]
        result = RefusedRow(table, row["topic_id"], row["partition"], offset, str(error))
        _log.error("%s[%d]@%d: %s", row["topic"], row["partition"], offset, error)
        now = datetime.now(UTC)
        outcome = {
            "experiment": experiment,
            "topic": row["topic"],
            "topic_id": row["topic_id"],
            "partition": row["partition"],
            "offset": offset,
            "reason": error.reason,
            "detail": str(error),
            "request_id": row.get("request_id", ""),
            "mirrored_at": row.get("mirrored_at", now),
            "ingested_at": row.get("ingested_at", now),
            "is_redacted": row.get("is_redacted", False),
            "version": row["version"],
        }
        # Of several candidates each may lose its row.
        source = f"{table}:{row['candidate']}" if "candidate" in row else table
        self._keep("dead_letters", outcome | {"source": source, "value": msgspec.json.encode(row)})
        if table == "pairs":
            self._keep("outcomes", outcome | {"kind": "dead_letter"})
        return result

    def _keep(self, table: str, row: dict[str, Any]) -> None:
        try:
            self._insert(Part(table, {name: (value,) for name, value in row.items()}))
        except DeadLetterError as error:
            raise FatalError(
                f"a row that the store refused cannot be kept as a dead letter: {error}"
            ) from error

    def _insert(self, part: Part) -> None:
        token = part.token()
        query_id = self._query_id(part, token)
        wait_s = self._first_wait_s
        while True:
            try:
                self._store.insert_columns(part.table, part.columns, dedup_token=token, query_id=query_id)
                self._away_since = None
                return
            except RetryError as error:
                if self._away_since is None:
                    self._away_since = time.monotonic()
                _log.warning("storing %d rows is tried again in %.1f s: %s", len(part), wait_s, error)
                # Jitter keeps several services from coming back at once.
                if self._stop.wait(wait_s * random.uniform(0.5, 1.0)):
                    raise
            self._retries += 1
            wait_s = min(wait_s * 2, self._longest_wait_s)

    def _query_id(self, part: Part, token: str) -> str:
        """`gnomon/<group>/<topic_id>/<partitions>/<table>/<token>`: who is writing what, for KILL QUERY."""
        topic_ids = "+".join(sorted(set(map(str, part.columns["topic_id"]))))
        numbers = "+".join(map(str, sorted(set(part.columns["partition"]))))
        return f"gnomon/{self._group}/{topic_ids}/{numbers}/{part.table}/{token[:16]}"
