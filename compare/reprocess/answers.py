"""The reference's answers of the requests under way, and how many of them could be reused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from ingest.packed_answer import unpack
from ingest.records import SourcePosition
from ingest.reference_answers import AnswerRole, KnownAnswer

REUSED = "reused"
NOT_KEPT = "not kept, or expired, or redacted"
OTHER = "asked in another way"
UNREADABLE = "kept in another format"


class KnownAnswers:
    """Finds answers among those that were read with their requests (`ingest.reference_answers`).

    `counts` says what became of each first answer that was looked for: REUSED, or why it had to be asked
    for. On the event loop only.
    """

    def __init__(self, packed: Callable[[SourcePosition], Mapping[str, bytes]]) -> None:
        """`packed` gives the packed answers of a position, by their hash."""
        self._packed = packed
        self.counts: Counter[str] = Counter()

    def find(self, position: SourcePosition, role: AnswerRole, asked_hash: str) -> KnownAnswer | None:
        """See `KnowsAnswers.find`."""
        packed = self._packed(position)
        data = packed.get(asked_hash)
        found = None if data is None else unpack(data)
        if role == "reference":
            if found is not None:
                why = REUSED
            elif data is not None:
                why = UNREADABLE
            else:
                why = OTHER if packed else NOT_KEPT
            self.counts[why] += 1
        return found
