"""Counts what a replay took up: each request by itself, since any choice of offsets may be run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compare.outcomes import DeliveredRange
from compare.reprocess.selection import Place


class ReplayLedger:
    """Stands where the service has `compare.ledger.Ledger`. Places are told apart by their epoch.

    There is no offset to commit. Each request is a delivered range of one record, written after its outcome,
    under a key of its own: written again it replaces itself.
    """

    def __init__(self, group: str, places: Sequence[Place]) -> None:
        self._group = group
        self._places = {place: number for number, place in enumerate(places, 1)}
        self._by_epoch = {number: place for place, number in self._places.items()}
        self._waiting: dict[tuple[int, int], DeliveredRange] = {}

    def epoch(self, place: Place) -> int:
        """Return the number that stands for the place."""
        return self._places[place]

    def is_current(self, partition: int, epoch: int) -> bool:
        """Nobody takes a place away."""
        return True

    def store(self, done: Iterable[tuple[int, int, int]]) -> None:
        """Note that the outcomes of these (partition, epoch, offset) are in the store."""
        for partition, epoch, offset in done:
            place = self._by_epoch[epoch]
            self._waiting[epoch, offset] = DeliveredRange(
                group=self._group,
                topic=place.topic,
                topic_id=place.topic_id,
                partition=partition,
                first_offset=offset,
                end_offset=offset + 1,
                records=1,
                epoch=epoch,
            )

    def take_ranges(self) -> tuple[DeliveredRange, ...]:
        """Return what is to be written."""
        return tuple(self._waiting.values())

    def ranges_stored(self, ranges: Iterable[DeliveredRange]) -> None:
        """Note that these are in the store."""
        for written in ranges:
            self._waiting.pop((written.epoch, written.first_offset), None)

    def to_commit(self) -> dict[int, int]:
        """Nothing is."""
        return {}
