"""The running service as its metrics and health pages see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from compare.counters import Counters

if TYPE_CHECKING:
    from compare.ledger import Ledger
    from compare.pipeline import Pipeline
    from ingest.endpoint import Endpoint
    from ingest.kafka_source import KafkaSource, Progress

LONGEST_RETRY_S = 30.0
"""A store that is away for longer makes the service not ready."""


class ServiceState(msgspec.Struct):
    """References to the parts, read when asked. `store_away_s` is how long inserts have been refused."""

    experiment: str
    pipeline: Pipeline
    source: KafkaSource
    ledger: Ledger
    endpoints: Mapping[str, Endpoint]
    store_away_s: Callable[[], float]

    @property
    def counters(self) -> Counters:
        """What became of the records so far."""
        return self.pipeline.counters

    def why_not_ready(self) -> list[str]:
        """Why no record is taken now; empty if records are taken."""
        reasons = []
        if not self.pipeline.is_started:
            reasons.append("starting")
        if self.pipeline.is_draining:
            reasons.append("stopping")
        away_s = self.store_away_s()
        if away_s > LONGEST_RETRY_S:
            reasons.append(f"the store refuses inserts for {away_s:.0f} s")
        closed = [name for name, endpoint in self.endpoints.items() if endpoint.admission.breaker.is_open]
        if closed:
            reasons.append(f"endpoints away: {', '.join(sorted(closed))}")
        paused = [name for name, endpoint in self.endpoints.items() if endpoint.admission.is_paused]
        if paused:
            reasons.append(f"paused by command: {', '.join(sorted(paused))}")
        return reasons

    def waiting(self) -> tuple[int, int]:
        """Records and bytes delivered and not taken up."""
        return self.source.waiting

    def outstanding(self) -> int:
        """Records taken up and not stored."""
        return self.ledger.outstanding()

    def progress(self) -> dict[int, Progress]:
        """Where each partition stands."""
        return self.source.progress()

    def held(self) -> frozenset[int]:
        """Partitions paused for their dead letters."""
        return self.source.held_partitions
