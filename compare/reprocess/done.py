"""What an earlier run of the same replay stored: it is not done again."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import datetime

import msgspec

from compare.already_stored import AlreadyStored, Settled
from compare.reprocess.selection import Place, Selected
from compare.store.client import Store
from ingest.records import RawRecord

_PAIRS = """
SELECT topic, topic_id, `partition`, names, groupArray(`offset`)
FROM
(
    SELECT topic, topic_id, `partition`, `offset`, arraySort(groupUniqArray(toString(candidate))) AS names
    FROM pairs
    WHERE experiment = {experiment:String} AND has({candidates:Array(String)}, candidate)
    GROUP BY topic, topic_id, `partition`, `offset`
)
GROUP BY topic, topic_id, `partition`, names
"""
_OUTCOMES = """
SELECT topic, topic_id, `partition`, groupArray(`offset`) FROM outcomes FINAL
WHERE experiment = {experiment:String} AND kind != 'failed'
GROUP BY topic, topic_id, `partition`
"""
_COUNTED = """
SELECT topic, topic_id, `partition`, groupArray(first_offset) FROM delivered_ranges FINAL
WHERE experiment = {experiment:String} AND consumer_group = {group:String}
GROUP BY topic, topic_id, `partition`
"""


class Done(msgspec.Struct):
    """By place: offsets that need nothing more (`whole`), some candidates' pairs yet (`partial`), and those
    that are counted as consumed. What failed is in none but the last: it is tried again.
    """

    whole: dict[Place, set[int]]
    partial: dict[Place, dict[int, frozenset[str]]]
    counted: dict[Place, set[int]]

    def remaining(self, selected: Selected) -> Selected:
        """Return what has to be taken up yet: not whole, or not counted."""
        left = {}
        for place, offsets in selected.offsets.items():
            over = self.whole.get(place, set()) & self.counted.get(place, set())
            rest = array("Q", (offset for offset in offsets if offset not in over))
            if rest:
                left[place] = rest
        return Selected(left)


def read_done(store: Store, experiment: str, group: str, candidates: Sequence[str]) -> Done:
    """Read what the experiment has. Raises what the store raises."""
    done = Done({}, {}, {})
    parameters = {"experiment": experiment, "group": group, "candidates": list(candidates)}
    for topic, topic_id, partition, names, offsets in store.query(_PAIRS, parameters).rows:
        place, known = Place(topic, topic_id, int(partition)), frozenset(map(str, names))
        if known >= set(candidates):
            done.whole.setdefault(place, set()).update(offsets)
        else:
            done.partial.setdefault(place, {}).update(dict.fromkeys(offsets, known))
    for sql, found in ((_OUTCOMES, done.whole), (_COUNTED, done.counted)):
        for topic, topic_id, partition, offsets in store.query(sql, parameters).rows:
            found.setdefault(Place(topic, topic_id, int(partition)), set()).update(offsets)
    return done


class StoredBefore(AlreadyStored):
    """Says of each request what the earlier run stored; positions tell, since nothing else writes them."""

    def __init__(self, done: Done) -> None:
        self._done = done

    async def look(self, record: RawRecord, now: datetime) -> Settled | None:
        """See `AlreadyStored.look`."""
        where = record.position
        place = Place(where.topic, where.topic_id, where.partition)
        if where.offset in self._done.whole.get(place, ()):
            return Settled(True)
        candidates = self._done.partial.get(place, {}).get(where.offset)
        return None if candidates is None else Settled(False, candidates)
