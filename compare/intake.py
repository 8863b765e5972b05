"""From a delivered record to a request worth replaying, or the outcome that ends it here."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Container
from datetime import datetime

from compare.outcomes import OtherOutcome
from ingest.decode import clamp_time, decode, oversize
from ingest.errors import DeadLetterError
from ingest.outcome import Failed, Skipped, SkipReason
from ingest.records import MirroredRequest, RawRecord, SourcePosition
from ingest.request import skip_reason
from ingest.sampling import Sampler
from ingest.settings import DeliverySettings, ExperimentSettings, SamplingSettings
from ingest.shedding import Shedder

REMEMBERED_IDS = 100_000
"""Request ids remembered to find duplicates: about 20 MB."""


class Intake:
    """Purged positions, decoding, skip rules, sampling, shedding and duplicates, in this order.

    What is sampled out does not depend on the lag; what is shed was not seen, so it makes no duplicate. Not
    thread-safe.
    """

    def __init__(
        self,
        experiment: ExperimentSettings,
        remembered_ids: int = REMEMBERED_IDS,
        purged: Container[object] = (),
        *,
        sampling: SamplingSettings | None = None,
        delivery: DeliverySettings | None = None,
    ) -> None:
        """`purged` are positions that shall leave no trace but that."""
        self._purged = purged
        self._models: Collection[str] = experiment.models
        self._sampler = Sampler(
            sampling or SamplingSettings(), fraction=experiment.sample_fraction, seed=experiment.seed
        )
        self._shedder = Shedder(delivery or DeliverySettings(), experiment.seed)
        self._remembered_ids = remembered_ids
        self._seen: OrderedDict[str, SourcePosition] = OrderedDict()

    def take(self, record: RawRecord, now: datetime) -> MirroredRequest | OtherOutcome:
        """The request to replay, or why there is none: skipped or dead-lettered. Never raises."""
        if record.position in self._purged:
            return ended(record, now, Skipped(SkipReason.PURGED))
        mirrored = decoded(record, now)
        if isinstance(mirrored, OtherOutcome):
            return mirrored
        sampled = skip_reason(mirrored, self._models) or self._sampler.sample(mirrored)
        if isinstance(sampled, Skipped):
            return ended(record, now, sampled, mirrored)
        skipped = self._shedder.shed(mirrored, now) or self._duplicate(mirrored)
        return sampled if skipped is None else ended(record, now, skipped, mirrored)

    def remember(self, request_id: str, position: SourcePosition) -> None:
        """Know an id that was seen before this process began: at another position it is a duplicate."""
        if request_id in self._seen:
            return
        self._seen[request_id] = position
        if len(self._seen) > self._remembered_ids:
            self._seen.popitem(last=False)

    def forget(self, request_id: str, position: SourcePosition) -> None:
        """The record at `position` was not compared: its request may come again, and is no duplicate then."""
        if self._seen.get(request_id) == position:
            del self._seen[request_id]

    def _duplicate(self, mirrored: MirroredRequest) -> Skipped | None:
        first = self._seen.get(mirrored.request_id)
        # A record that is delivered again, after a rebalance, is the same position: no duplicate.
        if first is not None and first != mirrored.position:
            return Skipped(
                SkipReason.DUPLICATE, f"first seen at partition {first.partition} offset {first.offset}"
            )
        self._seen[mirrored.request_id] = mirrored.position
        self._seen.move_to_end(mirrored.request_id)
        if len(self._seen) > self._remembered_ids:
            self._seen.popitem(last=False)
        return None


def decoded(record: RawRecord, now: datetime) -> MirroredRequest | OtherOutcome:
    """The request that the record holds, or why it has none. Never raises."""
    too_large = oversize(record)
    if too_large is not None:
        return ended(record, now, too_large)
    try:
        return decode(record, now)
    except DeadLetterError as error:
        return dead(record, now, error)


def ended(
    record: RawRecord, now: datetime, why: Skipped | Failed, mirrored: MirroredRequest | None = None
) -> OtherOutcome:
    """The outcome of a record that was skipped or failed; `mirrored` if it could be decoded."""
    return OtherOutcome(
        position=record.position,
        kind="skipped" if isinstance(why, Skipped) else "failed",
        reason=why.reason.value,
        detail=why.detail,
        request_id="" if mirrored is None else mirrored.request_id,
        mirrored_at=_mirrored_at(record, now, mirrored),
        ingested_at=now,
    )


def dead(
    record: RawRecord, now: datetime, error: DeadLetterError, mirrored: MirroredRequest | None = None
) -> OtherOutcome:
    """The outcome of a record that can never be processed; its original bytes go along."""
    return OtherOutcome(
        position=record.position,
        kind="dead_letter",
        reason=error.reason,
        detail=str(error),
        request_id="" if mirrored is None else mirrored.request_id,
        mirrored_at=_mirrored_at(record, now, mirrored),
        ingested_at=now,
        raw=record,
    )


def _mirrored_at(record: RawRecord, now: datetime, mirrored: MirroredRequest | None) -> datetime:
    return clamp_time(record.timestamp_ms, now)[0] if mirrored is None else mirrored.mirrored_at
