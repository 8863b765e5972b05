"""A migrated store on the real embedded engine, and a writer that stores pairs as the pipeline does."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from compare.store.client import Store, open_store
from tests.fixtures.stores import MigratedAt

# Recent, since tables drop old days; a whole hour, since equal requests count once an hour.
START = (datetime.now(UTC) - timedelta(days=1)).replace(hour=3, minute=0, second=0, microsecond=0)


class Writer:
    """Stores pairs, failures and delivered ranges of one experiment with candidate `q4`."""

    candidate = "q4"

    def __init__(self, store: Store) -> None:
        self.store = store
        self.experiment = f"e-{uuid.uuid4().hex[:12]}"
        self.version = 0
        self._waiting: list[dict[str, object]] = []

    def pair(
        self,
        offset: int,
        *,
        worse: str = "",
        partition: int = 0,
        second: float | None = None,
        route: str = "extract",
        request_hash: str | None = None,
        verdict: str | None = None,
        mode: str = "greedy",
        kl: float | None = None,
        tags: tuple[str, ...] = (),
        **columns: object,
    ) -> None:
        """One pair, stored by the next `flush` or `settled`.

        `worse` is "candidate", "reference" or ""; `second` is its time after START; `columns` are further
        ones of `pairs`, the same for all pairs of a flush.
        """
        self.version += 1
        at = START + timedelta(seconds=offset if second is None else second)
        row: dict[str, object] = {
            "experiment": self.experiment,
            "candidate": self.candidate,
            "reference": "fp16",
            "topic": "gnomon.mirror",
            "topic_id": "t-1",
            "partition": partition,
            "offset": offset,
            "attempt_id": uuid.uuid4(),
            "request_id": f"r-{partition}-{offset}",
            "request_hash": f"hash-{partition}-{offset}" if request_hash is None else request_hash,
            "mirrored_at": at,
            "ingested_at": at,
            "route": route,
            "mode": mode,
            "verdict": verdict or (f"{worse}_worse" if worse else "match"),
            "is_regression": worse == "candidate",
            "candidate_only_families": ["repetition"] if worse == "candidate" else [],
            "is_candidate_only_fault": worse == "candidate",
            "is_reference_only_fault": worse == "reference",
            "kl_forced_mean_nats": kl,
            "tags": list(tags),
            "version": self.version,
            **columns,
        }
        self._waiting.append(row)

    def flush(self) -> None:
        """Store the pairs that wait, in one insert."""
        if self._waiting:
            self.store.insert("pairs", list(self._waiting[0]), [list(row.values()) for row in self._waiting])
            self._waiting.clear()

    def failed(
        self, offset: int, *, partition: int = 0, kind: str = "failed", reason: str = "endpoint_away"
    ) -> None:
        row = {
            "experiment": self.experiment,
            "topic": "gnomon.mirror",
            "topic_id": "t-1",
            "partition": partition,
            "offset": offset,
            "kind": kind,
            "reason": reason,
            "mirrored_at": START,
            "ingested_at": START,
            "version": 1,
        }
        self.store.insert("outcomes", list(row), [list(row.values())])

    def settled(self, first: int, end: int, *, partition: int = 0, minute: float = 0.0) -> None:
        """The range that the pipeline writes once all of [first, end) has its outcome stored."""
        self.flush()
        self.version += 1
        row = {
            "experiment": self.experiment,
            "consumer_group": "gnomon",
            "topic": "gnomon.mirror",
            "topic_id": "t-1",
            "partition": partition,
            "first_offset": first,
            "end_offset": end,
            "records": end - first,
            "ingested_at": START + timedelta(minutes=minute),
            "version": self.version,
        }
        self.store.insert("delivered_ranges", list(row), [list(row.values())])

    def folded(self, metric: str = "regression_rate", dimension: str = "experiment") -> int:
        """How many pairs a series has folded, by the view."""
        rows = self.store.query(
            "SELECT sum(pairs_folded + if(status = 'needs_baseline', baseline_pairs, 0)) FROM detectors_v1"
            " WHERE experiment = {e:String} AND metric = {m:String} AND dimension = {d:String}",
            {"e": self.experiment, "m": metric, "d": dimension},
        ).rows
        return int(rows[0][0])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Iterator[Store]:
    with open_store(migrated_at(tmp_path_factory.mktemp("alerts-store")), role="owner") as opened:
        yield opened


@pytest.fixture
def writer(store: Store) -> Writer:
    return Writer(store)
