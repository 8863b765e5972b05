"""What became of the records of one run."""

from __future__ import annotations

from collections import Counter

import msgspec

from compare.batcher import Completed


class Counters(msgspec.Struct):
    """Records, counted when their outcome is in the store.

    `consumed` is counted apart, from the offset ranges that Kafka delivered; after a clean end it
    equals `outcomes`. `pairs` counts pairs: one for each candidate of a compared record. `delivered`
    counts what was taken up, stored or not. `already_stored` counts records whose outcome an earlier
    run or owner stored, before it could commit. `lost` counts offsets that Kafka's retention removed before
    they were read: no records of `consumed`.
    """

    delivered: int = 0
    consumed: int = 0
    compared: int = 0
    pairs: int = 0
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    failed: Counter[str] = msgspec.field(default_factory=Counter)
    dead_lettered: int = 0
    already_stored: int = 0
    lost: int = 0

    @property
    def outcomes(self) -> int:
        """Records with a stored outcome."""
        ended = self.skipped.total() + self.failed.total() + self.dead_lettered
        return self.compared + ended + self.already_stored

    def count(self, completed: Completed, *, refused_pairs: int = 0) -> None:
        """Count one record whose outcome is stored.

        `refused_pairs` of its pairs were refused by the store; one without any pair left is a dead letter.
        """
        other, stored_pairs = completed.other, len(completed.pairs) - refused_pairs
        if completed.is_stored:
            self.already_stored += 1
        elif other is None and stored_pairs > 0:
            self.compared += 1
            self.pairs += stored_pairs
        elif other is None:
            self.dead_lettered += 1
        elif other.kind == "skipped":
            self.skipped[other.reason] += 1
        elif other.kind == "failed":
            self.failed[other.reason] += 1
        else:
            self.dead_lettered += 1
