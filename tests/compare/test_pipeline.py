"""The pipeline over fakes: each record's one outcome, and bounds on what is taken up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import msgspec
import pytest

from compare.result import Comparison
from compare.writer import RefusedRow
from ingest.errors import BudgetError, DeadLetterError, EndpointAwayError, RetryError
from ingest.pair import ResponsePair
from ingest.records import MirroredRequest
from ingest.settings import DeliverySettings
from tests.compare.pipeline_rig import DELIVERY, TOPIC_ID, Rig, compare_all, envelope


async def test_each_record_has_exactly_one_outcome_and_all_is_committed() -> None:
    values = [envelope("r0"), b"\xffbroken", envelope("r2", model="unknown"), envelope("r0"), envelope("r4")]
    rig = Rig(values)
    counters = await rig.run(5)
    assert rig.writer.stored == [
        (0, "compared"), (1, rig.letters.sent[0][1]), (2, "model"), (3, "duplicate"), (4, "compared"),
    ]  # fmt: skip
    assert rig.letters.sent[0][0] == b"\xffbroken"
    assert (counters.consumed, counters.compared, counters.dead_lettered) == (5, 2, 1)
    assert counters.skipped == {"model": 1, "duplicate": 1}
    assert counters.failed == {}
    assert rig.source.committed[-1] == 5
    ranges = [r for batch in rig.writer.batches for r in batch.ranges]
    assert sum(r.records for r in ranges) == 5
    assert [r.first_offset for r in ranges[1:]] == [r.end_offset for r in ranges[:-1]]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (EndpointAwayError("endpoint cand: connection refused"), "endpoint_away"),
        (BudgetError("endpoint cand: 10 tokens of 10 are used up"), "budget"),
    ],
)
async def test_a_record_that_cannot_be_replayed_fails_and_is_asked_once(
    error: RetryError, reason: str
) -> None:
    async def behave(mirrored: MirroredRequest) -> None:
        if mirrored.request_id == "r1":
            raise error

    rig = Rig([envelope("r0"), envelope("r1")], behave=behave)
    counters = await rig.run(2)
    assert rig.replayer.calls.count("r1") == 1
    assert counters.failed == {reason: 1}
    (failed,) = [o for batch in rig.writer.batches for o in batch.others]
    assert (failed.kind, failed.detail, failed.request_id) == ("failed", str(error), "r1")


async def test_no_more_than_max_in_flight_requests_are_replayed_at_once() -> None:
    async def behave(mirrored: MirroredRequest) -> None:
        await asyncio.sleep(0.01)

    rig = Rig([envelope(f"r{n}") for n in range(30)], behave=behave)
    await rig.run(30)
    assert rig.replayer.most_in_flight == 4


async def test_no_more_bytes_are_taken_up_than_may_be_under_way() -> None:
    size = len(envelope("r00"))
    delivery = msgspec.structs.replace(DELIVERY, max_under_way_bytes=3 * size)
    rig = Rig([envelope(f"r{n:02d}") for n in range(20)], delivery=delivery)
    rig.writer.may_write.clear()
    running = asyncio.create_task(rig.run(20))
    await rig.until(lambda: len(rig.replayer.calls) == 3)
    await asyncio.sleep(0.1)
    # Three that wait for the store, and the next one in the hand of who waits for room.
    assert (len(rig.replayer.calls), rig.source.taken) == (3, 4)
    rig.writer.may_write.set()
    counters = await running
    assert counters.compared == counters.consumed == 20
    assert rig.source.committed[-1] == 20


async def test_comparison_runs_off_the_event_loop_and_its_dead_letter_is_kept() -> None:
    threads = set()

    def compare(pairs: Sequence[ResponsePair]) -> list[Comparison | DeadLetterError]:
        threads.add(threading.current_thread().name)
        results = compare_all(pairs)
        for index, pair in enumerate(pairs):
            if pair.mirrored.request_id == "r1":
                results[index] = DeadLetterError("uncomparable", "r1 breaks a metric")
        return results

    rig = Rig([envelope("r0"), envelope("r1")], compare=compare)
    counters = await rig.run(2)
    assert all(name.startswith("gnomon-compare") for name in threads)
    assert rig.writer.stored == [(0, "compared"), (1, "uncomparable")]
    assert rig.letters.sent == [(envelope("r1"), "uncomparable")]
    assert counters.dead_lettered == 1


async def test_nothing_is_committed_past_a_dead_letter_that_is_not_kept() -> None:
    rig = Rig([envelope("r0"), b"broken", envelope("r2")])
    rig.letters.is_away.set()
    running = asyncio.create_task(rig.run(3))
    await rig.until(lambda: len(rig.writer.stored) == 2 and rig.source.committed == [1])
    rig.letters.is_away.clear()
    counters = await running
    assert [offset for offset, _ in rig.writer.stored] == [0, 1, 2]
    assert rig.source.committed == [1, 3]
    assert counters.consumed == 3


async def test_a_store_that_is_away_stops_intake_within_bounds_and_loses_nothing() -> None:
    rig = Rig([envelope(f"r{n}") for n in range(200)])
    rig.writer.may_write.clear()
    running = asyncio.create_task(rig.run(200))
    await rig.until(lambda: rig.source.taken >= 44)
    await asyncio.sleep(0.2)
    # One batch being written, one queue of a batch, one record in the hand of each of 36 workers.
    assert rig.source.taken <= 8 + 8 + 36
    assert rig.source.committed == []
    rig.writer.may_write.set()
    await running
    assert rig.writer.stored == [(offset, "compared") for offset in range(200)]
    assert rig.source.committed[-1] == 200


async def test_a_pair_that_the_store_refuses_counts_as_a_dead_letter() -> None:
    rig = Rig(
        [envelope("r0"), envelope("r1")], delivery=DeliverySettings(batch_pairs=2, commit_interval_s=0.02)
    )
    rig.writer.refused = (
        RefusedRow("pairs", TOPIC_ID, 0, 1, "cannot be stored"),
        RefusedRow("tokens", TOPIC_ID, 0, 0, "cannot be stored"),
    )
    counters = await rig.run(2)
    assert (counters.compared, counters.pairs, counters.dead_lettered) == (1, 1, 1)
