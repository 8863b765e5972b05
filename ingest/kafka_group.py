"""Who else is in the consumer group. One experiment's services share its records; two experiments would take
them from each other, without an error anywhere.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kafka import OffsetAndMetadata, TopicPartition

from ingest.settings import KafkaSettings

_MARK = "gnomon experiment "

_log = logging.getLogger(__name__)


class GroupWatch:
    """Says in the log what others in the group took, and whether they are another experiment's.

    `taken` and `given` are called on kafka-python's I/O thread, `begins` on the consumer's owner's.
    """

    def __init__(self, settings: KafkaSettings, experiment: str) -> None:
        """`experiment` is noted with each committed offset; empty notes nothing."""
        self._settings = settings
        self._experiment = experiment
        self._had: set[int] = set()
        self._told: set[str] = set()

    def to_commit(self, offsets: Mapping[int, int]) -> dict[Any, Any]:
        """Offsets by partition as kafka-python commits them, with a note of whose they are."""
        note = _MARK + self._experiment if self._experiment else ""
        topic = self._settings.topic
        return {
            TopicPartition(topic, p): OffsetAndMetadata(offset, note, -1) for p, offset in offsets.items()
        }

    def taken(self, partitions: Collection[int], *, is_lost: bool) -> None:
        """A rebalance begins, or with `is_lost` the group took us for dead."""
        self._had |= set(partitions)
        if is_lost and partitions:
            _log.warning("%s lost: the group no longer counts us in", self._named(partitions))

    def given(self, partitions: Iterable[int]) -> None:
        """A rebalance ended with these as ours."""
        now = set(partitions)
        gone, self._had = self._had - now, set()
        if gone:
            # Another service of the experiment is the plan; one that leaves us nothing is worth a look.
            _log.log(
                logging.INFO if now else logging.WARNING,
                '%s went to another member of group "%s"%s; a group is for the services of one experiment',
                self._named(gone),
                self._settings.group,
                "" if now else ", none is left here",
            )

    def begins(self, note: str | None) -> None:
        """A partition begins at an offset that was committed with this metadata."""
        other = experiment_in(note)
        if self._experiment and other and other != self._experiment and other not in self._told:
            self._told.add(other)
            _log.warning("%s", shared_group(self._settings.group, other, self._experiment))

    def _named(self, partitions: Collection[int]) -> str:
        numbers = ", ".join(map(str, sorted(partitions)))
        return f"partition{'s' * (len(partitions) != 1)} {numbers} of {self._settings.topic}"


def experiment_in(note: str | None) -> str:
    """The experiment that a committed offset's metadata names; empty if none."""
    return note.removeprefix(_MARK) if note and note.startswith(_MARK) else ""


def shared_group(group: str, other: str, experiment: str) -> str:
    """One line: the group was another experiment's."""
    return (
        f'the group "{group}" was read by experiment "{other}": if that goes on, each takes records from the '
        f'other; give experiment "{experiment}" a kafka.group of its own'
    )
