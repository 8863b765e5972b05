import random

import pytest

from compare.alerts.cursor import Cursor, Feed, PartitionKey, merge
from compare.alerts.series import FoldedPair


def pair(partition: int, offset: int, ms: int) -> FoldedPair:
    return FoldedPair(topic_id="t", partition=partition, offset=offset, mirrored_ms=ms, is_counted=True)


def feed(partition: int, pairs: list[FoldedPair], end: int, *, behind: bool = False, start: int = 0) -> Feed:
    return Feed(Cursor("t", partition, start), tuple(pairs), end, behind, newest_ms=0)


def test_order_is_time_partition_offset() -> None:
    taken, cursors = merge(
        [
            feed(1, [pair(1, 0, 10), pair(1, 1, 30)], 2),
            feed(0, [pair(0, 0, 10), pair(0, 1, 20), pair(0, 2, 30)], 5),
        ]
    )
    assert [(p.partition, p.offset) for _, p in taken] == [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1)]
    assert {key: cursor.next_offset for key, cursor in cursors.items()} == {("t", 0): 5, ("t", 1): 2}


def test_time_never_goes_back_within_a_partition() -> None:
    taken, _ = merge([feed(0, [pair(0, 0, 50), pair(0, 1, 20)], 2), feed(1, [pair(1, 0, 30)], 1)])
    assert [(ms, p.partition, p.offset) for ms, p in taken] == [(30, 1, 0), (50, 0, 0), (50, 0, 1)]


def test_partition_that_is_behind_without_any_pair_holds_all() -> None:
    taken, cursors = merge([feed(0, [pair(0, 0, 10)], 1), feed(1, [], 0, behind=True)])
    assert taken == []
    assert cursors["t", 0].next_offset == 0


def test_open_offset_is_folded_late_and_closed() -> None:
    cursor = Cursor("t", 0, 5, time_ms=100, open_offsets=(2, 3))
    taken, cursors = merge([Feed(cursor, (pair(0, 2, 40),), 6, False, 0, open_offsets=(2, 3, 5))])
    assert [(ms, p.offset) for ms, p in taken] == [(100, 2)]
    # 2 is folded; 3 is still without a pair; 5 failed within what is now behind the cursor.
    assert cursors["t", 0].open_offsets == (3, 5)


def test_open_offset_survives_while_its_pair_is_held_back() -> None:
    cursor = Cursor("t", 0, 5, time_ms=100, open_offsets=(2,))
    late = Feed(cursor, (pair(0, 2, 40),), 5, False, 0)
    _, cursors = merge([late, feed(1, [pair(1, 0, 50)], 1, behind=True)])
    assert cursors["t", 0].open_offsets == (2,)


def test_offset_folded_before_is_not_opened_again() -> None:
    """Its failure is still in the store beside the pair that came of it."""
    _, cursors = merge([Feed(Cursor("t", 0, 5), (), 5, False, 0, open_offsets=(2,))])
    assert cursors["t", 0].open_offsets == ()


@pytest.mark.parametrize("seed", range(20))
def test_every_pair_is_folded_exactly_once_whatever_arrives_when(seed: int) -> None:
    """Random partitions, times, gaps, failures that turn into pairs, watermarks and read limits."""
    rng = random.Random(seed)
    stored: dict[PartitionKey, dict[int, FoldedPair]] = {}
    failed: dict[PartitionKey, set[int]] = {}
    for partition in range(3):
        offsets = [o for o in range(60) if rng.random() < 0.8]
        failed["t", partition] = {o for o in offsets if rng.random() < 0.2}
        stored["t", partition] = {
            o: pair(partition, o, o * 10 + rng.randrange(-30, 30)) for o in offsets if rng.random() < 0.9
        }
    cursors = {key: Cursor(*key, next_offset=0) for key in stored}
    ranges = dict.fromkeys(stored, (0, 0))
    is_retried: dict[PartitionKey, bool] = dict.fromkeys(stored, False)
    seen: list[tuple[str, int, int]] = []
    for round_ in range(200):
        feeds = []
        for key, pairs in stored.items():
            start, end = ranges[key]
            if rng.random() < 0.5 or round_ > 150:
                # The commit goes through: what still failed has failed for good.
                if end > start:
                    for offset in failed[key] & set(range(start, end)):
                        if not is_retried[key]:
                            pairs.pop(offset, None)
                start, is_retried[key] = end, False
                end = min(end + rng.randrange(0, 8), 60)
                ranges[key] = (start, end)
            elif rng.random() < 0.3:
                is_retried[key] = True
            cursor = cursors[key]
            visible = sorted(
                p.offset
                for p in pairs.values()
                if (p.offset >= cursor.next_offset or p.offset in cursor.open_offsets)
                and not (start <= p.offset < end and p.offset in failed[key] and not is_retried[key])
                and (p.offset < end or rng.random() < 0.3)
            )
            settled_end, below = max(end, cursor.next_offset), [o for o in visible if o < end]
            is_behind = len(below) < len(visible)
            if len(below) > 5:
                below, is_behind = below[:5], True
                settled_end = max(below[-1] + 1, cursor.next_offset)
            open_offsets = tuple(sorted(failed[key] & set(range(start, end))))
            feeds.append(
                Feed(cursor, tuple(pairs[o] for o in below), settled_end, is_behind, 0, open_offsets)
            )
        taken, cursors = merge(feeds)
        seen += [(p.topic_id, p.partition, p.offset) for _, p in taken]
    expected = sorted((key[0], key[1], offset) for key, pairs in stored.items() for offset in pairs)
    assert sorted(seen) == expected


def test_outcome_that_is_held_back_is_not_folded_again_and_its_offset_stays_open() -> None:
    """An outcome moves the accounting once; a pair that later takes its place is still folded."""
    away = FoldedPair(topic_id="t", partition=0, offset=1, mirrored_ms=20, outcome="failed")
    late = pair(0, 2, 90)
    ready = Feed(Cursor("t", 0, 0), (pair(0, 0, 10), away, late), 3, False, 0, open_offsets=(1,))
    taken, cursors = merge([ready, feed(1, [pair(1, 0, 50)], 1, behind=True)])
    assert [(p.partition, p.offset) for _, p in taken] == [(0, 0), (0, 1), (1, 0)]
    assert (cursors["t", 0].next_offset, cursors["t", 0].open_offsets) == (2, (1,))
    again = Feed(cursors["t", 0], (pair(0, 1, 25), late), 3, False, 0, open_offsets=(1,))
    taken, cursors = merge([again])
    assert [(p.outcome, p.offset) for _, p in taken] == [("pair", 1), ("pair", 2)]
    assert (cursors["t", 0].next_offset, cursors["t", 0].open_offsets) == (3, ())
