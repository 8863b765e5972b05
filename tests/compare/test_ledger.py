"""The ledger against a model that keeps every offset and searches it by brute force."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from compare.ledger import Ledger
from compare.outcomes import DeliveredRange
from ingest.assignment import Prepared


class LedgerMachine(RuleBasedStateMachine):
    """One partition through deliveries with gaps, stores in any order, crashes and rebalances.

    The model: the set of offsets that exist, those stored, the broker's committed offset, and the
    table of ranges keyed by first offset as the store would keep it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log: list[int] = []
        self.end = 0
        self.broker_committed = 0
        self.table: dict[int, DeliveredRange] = {}
        self.stored: set[int] = set()

    @initialize()
    def begin(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.ledger = Ledger("g")
        self.assign()

    def assign(self) -> None:
        start = self.broker_committed
        # As the read-back finds them in the store.
        ranges = {first: row.end_offset for first, row in self.table.items() if row.end_offset > start}
        newest = max((row.version for row in self.table.values()), default=0)
        self.epoch = self.ledger.assign("t", "id", 0, start, Prepared(ranges, newest))
        self.position = self.broker_committed
        self.delivered: list[int] = []
        self.written: tuple[DeliveredRange, ...] = ()
        self.stored_now: set[int] = set()

    @rule(gaps=st.lists(st.integers(0, 3), min_size=1, max_size=6), tail=st.integers(0, 2))
    def produce(self, gaps: list[int], tail: int) -> None:
        for gap in gaps:
            self.log.append(self.end + gap)
            self.end = self.log[-1] + 1
        self.end += tail

    @rule(most=st.integers(0, 5))
    def poll(self, most: int) -> None:
        ahead = [offset for offset in self.log if offset >= self.position]
        taken = ahead[:most]
        position = self.end if len(taken) == len(ahead) else (taken[-1] + 1 if taken else self.position)
        self.ledger.deliver(0, self.epoch, taken, position)
        self.delivered += taken
        self.position = position

    @precondition(lambda self: len(self.delivered) > len(self.stored_now))
    @rule(data=st.data())
    def store(self, data: st.DataObject) -> None:
        open_offsets = sorted(set(self.delivered) - self.stored_now)
        chosen = data.draw(st.lists(st.sampled_from(open_offsets), min_size=1, unique=True))
        self.ledger.store((0, self.epoch, offset) for offset in chosen)
        self.stored_now |= set(chosen)
        self.stored |= set(chosen)

    @rule()
    def late_completion_of_an_old_epoch(self) -> None:
        before = self.ledger.watermark(0)
        self.ledger.store((0, self.epoch - 1, offset) for offset in self.delivered)
        assert self.ledger.watermark(0) == before

    @rule()
    def write_ranges(self) -> None:
        self.written = self.ledger.take_ranges()
        for delivered in self.written:
            # The table keeps the highest version of a key.
            former = self.table.get(delivered.first_offset)
            assert former is None or former.version <= delivered.version
            self.table[delivered.first_offset] = delivered

    @rule()
    def acknowledge_ranges(self) -> None:
        self.ledger.ranges_stored(self.written)

    @rule(is_answer_lost=st.booleans())
    def commit(self, is_answer_lost: bool) -> None:
        offsets = self.ledger.to_commit()
        if offsets:
            self.broker_committed = offsets[0]
            if not is_answer_lost:
                self.ledger.committed(offsets)

    @rule()
    def crash(self) -> None:
        self.restart()

    @precondition(lambda self: self.broker_committed > 0)
    @rule(data=st.data())
    def set_back_by_hand(self, data: st.DataObject) -> None:
        """Somebody sets the group's offset back while nobody runs: what is stored stays stored."""
        self.broker_committed = data.draw(st.integers(0, self.broker_committed - 1))
        self.restart()

    @rule()
    def rebalance(self) -> None:
        self.ledger.revoke(0)
        assert self.ledger.watermark(0) is None
        assert self.ledger.to_commit() == {}
        self.assign()

    @invariant()
    def watermark_is_the_lowest_open_offset_or_the_position(self) -> None:
        open_offsets = set(self.delivered) - self.stored_now
        expected = min(open_offsets) if open_offsets else self.position
        assert self.ledger.watermark(0) == expected
        assert self.ledger.outstanding() == len(open_offsets)

    @invariant()
    def nothing_is_committed_that_is_not_stored(self) -> None:
        below = {offset for offset in self.log if offset < self.broker_committed}
        assert below <= self.stored

    @invariant()
    def the_ranges_count_every_record_below_them_once(self) -> None:
        """What the table of ranges adds up to is what was delivered below the highest end in it.

        Only while nothing is half written: a range that replaced a longer one is short of the rest
        until it is delivered again.
        """
        top = max((row.end_offset for row in self.table.values()), default=0)
        if self.broker_committed < top:
            return
        records = sum(row.records for row in self.table.values())
        assert records == sum(offset < top for offset in self.log)


TestLedgerAgainstModel = LedgerMachine.TestCase
TestLedgerAgainstModel.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def test_gaps_are_committed_over() -> None:
    ledger = Ledger("g")
    epoch = ledger.assign("t", "id", 3, 10)
    ledger.deliver(3, epoch, [12, 15], 20)
    ledger.store([(3, epoch, 15)])
    assert ledger.watermark(3) == 12
    ledger.store([(3, epoch, 12)])
    (delivered,) = ledger.take_ranges()
    assert (delivered.first_offset, delivered.end_offset, delivered.records) == (10, 20, 2)
    assert ledger.to_commit() == {}
    ledger.ranges_stored([delivered])
    assert ledger.to_commit() == {3: 20}


def test_no_second_range_while_one_is_unconfirmed() -> None:
    ledger = Ledger("g")
    epoch = ledger.assign("t", "id", 0, 0)
    ledger.deliver(0, epoch, [0, 1], 2)
    ledger.store([(0, epoch, 0)])
    first = ledger.take_ranges()
    ledger.ranges_stored(first)
    ledger.store([(0, epoch, 1)])
    assert ledger.take_ranges() == ()
    assert ledger.to_commit() == {0: 1}
    ledger.committed({0: 1})
    (second,) = ledger.take_ranges()
    assert (second.first_offset, second.end_offset, second.records) == (1, 2, 1)


def test_a_jump_back_needs_a_new_assignment() -> None:
    ledger = Ledger("g")
    epoch = ledger.assign("t", "id", 0, 5)
    with pytest.raises(ValueError, match="offset 4 delivered after 4"):
        ledger.deliver(0, epoch, [4], 5)


def settle(ledger: Ledger, epoch: int, offsets: range) -> list[tuple[int, int, int]]:
    """Deliver and store these, and commit; the ranges written meanwhile."""
    ledger.deliver(0, epoch, list(offsets), offsets.stop)
    ledger.store([(0, epoch, offset) for offset in offsets])
    written = ledger.take_ranges()
    ledger.ranges_stored(written)
    ledger.committed(ledger.to_commit())
    return [(row.first_offset, row.end_offset, row.records) for row in written]


def test_a_group_set_back_by_hand_counts_no_record_twice() -> None:
    """Stored: [0, 100), [100, 200) and [200, 300), 100 records each; set back to 50."""
    ledger = Ledger("g")
    epoch = ledger.assign("t", "id", 0, 50, Prepared({0: 100, 100: 200, 200: 300}, 0))
    assert settle(ledger, epoch, range(50, 150)) == [(50, 150, 0)]
    # It begins where no stored range does, and [200, 300) goes on counting its own.
    assert settle(ledger, epoch, range(150, 200)) == [(150, 200, 0)]
    # It replaces [200, 300), so it counts what that one did, as far as it goes.
    assert settle(ledger, epoch, range(200, 250)) == [(200, 250, 50)]
    assert settle(ledger, epoch, range(250, 400)) == [(250, 400, 150)]


def test_a_later_owners_range_has_a_higher_version_whatever_its_clock_says() -> None:
    tomorrow = 2**62
    ledger = Ledger("g")
    epoch = ledger.assign("t", "id", 0, 0, Prepared({}, tomorrow))
    ledger.deliver(0, epoch, [0], 1)
    ledger.store([(0, epoch, 0)])
    (written,) = ledger.take_ranges()
    assert (written.version, written.epoch) == (tomorrow + 1, epoch)


def test_what_retention_removed_unread_is_lost_and_what_was_stored_of_it_is_consumed() -> None:
    """Committed: 100. Stored: 100 to 102 and their range, 103 and 105 without one. Removed: below 110."""
    ledger = Ledger("g")
    epoch = ledger.assign("t", "id", 0, 100, Prepared({100: 103}, 0, (100, 101, 102, 103, 105)))
    ledger.lose(0, epoch, 100, 110)
    ledger.deliver(0, epoch, [112, 113], 114)
    ledger.store([(0, epoch, 113)])
    # 110 and 111 are a gap of compaction: nobody lost them. 104 and 106 to 109 nobody read.
    (written,) = ledger.take_ranges()
    assert (written.first_offset, written.end_offset, written.records, written.lost) == (100, 112, 5, 5)
    ledger.ranges_stored([written])
    ledger.committed(ledger.to_commit())
    ledger.store([(0, epoch, 112)])
    (after,) = ledger.take_ranges()
    assert (after.first_offset, after.end_offset, after.records, after.lost) == (112, 114, 2, 0)


def test_a_loss_is_told_with_the_range_that_reaches_beyond_it() -> None:
    """A restart before the commit of that range finds the gap again: it must not be in two ranges."""
    ledger = Ledger("g")
    epoch = ledger.assign("t", "id", 0, 0)
    ledger.deliver(0, epoch, [0, 1], 2)
    ledger.lose(0, epoch, 2, 50)
    ledger.deliver(0, epoch, [50], 51)
    ledger.store([(0, epoch, 0)])
    (before,) = ledger.take_ranges()
    assert (before.first_offset, before.end_offset, before.records, before.lost) == (0, 1, 1, 0)
    ledger.ranges_stored([before])
    ledger.committed(ledger.to_commit())
    ledger.store([(0, epoch, 1), (0, epoch, 50)])
    (after,) = ledger.take_ranges()
    assert (after.first_offset, after.end_offset, after.records, after.lost) == (1, 51, 2, 48)


def test_a_group_set_back_to_what_is_gone_has_lost_only_what_nobody_read() -> None:
    ledger = Ledger("g")
    epoch = ledger.assign("t", "id", 0, 50, Prepared({0: 100, 90: 120, 150: 160}, 0))
    ledger.lose(0, epoch, 50, 155)
    ledger.deliver(0, epoch, [155], 156)
    ledger.store([(0, epoch, 155)])
    (written,) = ledger.take_ranges()
    assert (written.records, written.lost) == (0, 150 - 120)
