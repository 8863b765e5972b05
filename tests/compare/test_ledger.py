"""The ledger against a model that keeps every offset and searches it by brute force."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from compare.ledger import Ledger
from compare.outcomes import DeliveredRange


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
        self.epoch = self.ledger.assign("t", "id", 0, self.broker_committed)
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
    def ranges_below_the_commit_tile_it_and_count_every_record_once(self) -> None:
        at, records = 0, 0
        while at < self.broker_committed:
            delivered = self.table[at]
            assert delivered.end_offset > at
            at, records = delivered.end_offset, records + delivered.records
        assert at == self.broker_committed
        assert records == sum(offset < self.broker_committed for offset in self.log)
        # At most one range, the one being committed, reaches beyond; none is left inside another.
        starts = sorted(self.table)
        for first, following in zip(starts, starts[1:], strict=False):
            assert self.table[first].end_offset <= following


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
