"""From a stored request that is run again to the request to replay."""

from __future__ import annotations

from collections.abc import Callable, Container
from datetime import datetime

import msgspec

from compare.intake import Intake, decoded, ended
from compare.outcomes import OtherOutcome
from compare.reprocess.stored import StoredRequest
from ingest.outcome import Skipped, SkipReason
from ingest.records import MirroredRequest, RawRecord, SourcePosition
from ingest.request import skip_reason
from ingest.settings import ExperimentSettings


class StoredIntake(Intake):
    """Takes what was chosen: without sampling, shedding and the search for duplicates.

    The time of mirroring is the stored one: the record's own may be older than the clock's tolerance.
    """

    def __init__(
        self,
        experiment: ExperimentSettings,
        request: Callable[[SourcePosition], StoredRequest],
        purged: Container[object] = (),
    ) -> None:
        """`request` gives what is stored of a request under way (`ReplaySource.request`)."""
        super().__init__(experiment, purged=purged)
        self._request = request

    def take(self, record: RawRecord, now: datetime) -> MirroredRequest | OtherOutcome:
        """See `Intake.take`."""
        if record.position in self._purged:
            return ended(record, now, Skipped(SkipReason.PURGED))
        stored = self._request(record.position)
        mirrored = stored.mirrored or decoded(record, now)
        if isinstance(mirrored, OtherOutcome):
            return mirrored
        mirrored = msgspec.structs.replace(
            mirrored,
            mirrored_at=stored.mirrored_at,
            is_clock_suspect=stored.is_clock_suspect,
            ingested_at=now,
        )
        skipped = skip_reason(mirrored, self._models)
        return mirrored if skipped is None else ended(record, now, skipped, mirrored)
