"""The pipeline over fakes: partitions lost, stored before, or held for their dead letters."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator, Mapping

import msgspec

from compare.already_stored import AlreadyStored
from compare.fence import LostPartitionError
from compare.read_back import StoredKey
from ingest.pair import ResponsePair
from ingest.records import MirroredRequest
from ingest.request import request_hash
from tests.compare.pipeline_rig import EXPERIMENT, Found, Rig, envelope


async def test_what_is_under_way_when_a_partition_is_lost_is_cancelled_and_done_again() -> None:
    asked: list[asyncio.Event] = []

    async def behave(mirrored: MirroredRequest) -> None:
        if mirrored.request_id == "r1":
            asked.append(asyncio.Event())
            await asked[-1].wait()

    rig = Rig([envelope("r0"), envelope("r1")], behave=behave)
    running = asyncio.create_task(rig.run(2))
    await rig.until(lambda: rig.source.committed == [1] and len(asked) == 1)
    rig.ledger.revoke(0)
    # No model is kept busy for the former owner.
    await rig.until(lambda: rig.replayer.in_flight == 0)
    rig.source.deliver_all(start=1)
    await rig.until(lambda: len(asked) == 2)
    asked[1].set()
    counters = await running
    # Asked twice, stored once; and the second delivery was not taken for a duplicate.
    assert rig.writer.stored == [(0, "compared"), (1, "compared")]
    assert rig.source.committed == [1, 2]
    assert counters.consumed == 2


async def test_what_is_stored_already_is_settled_without_a_call_or_a_row() -> None:
    values = [envelope("r0"), b"broken", envelope("r2"), envelope("r3")]
    hashes = {n: request_hash(json.loads(envelope(f"r{n}"))["request"]) for n in (0, 2, 3)}
    stored = {
        0: StoredKey(frozenset({("cand", hashes[0])})),
        1: StoredKey(frozenset(), True, ""),
        # The one has another hash, the other no row of our candidate.
        2: StoredKey(frozenset({("cand", "0" * 32)})),
        3: StoredKey(frozenset({("another", hashes[3])}), False),
    }
    rig = Rig(values, stored=stored)
    counters = await rig.run(4)
    assert sorted(rig.replayer.calls) == ["r2", "r3"]
    assert rig.letters.sent == []
    assert rig.writer.stored == [(2, "compared"), (3, "compared")]
    assert (counters.already_stored, counters.compared, counters.consumed) == (2, 2, 4)
    assert rig.source.committed[-1] == 4
    assert sum(taken.records for batch in rig.writer.batches for taken in batch.ranges) == 4


async def test_only_the_candidates_that_are_not_stored_are_written() -> None:
    experiment = msgspec.structs.replace(EXPERIMENT, candidates=["cand", "other"])
    digest = request_hash(json.loads(envelope("r0"))["request"])
    rig = Rig([envelope("r0")])
    rig.pipeline._stored = AlreadyStored(
        Found({0: StoredKey(frozenset({("cand", digest)}))}), experiment.candidates
    )
    replay = rig.replayer.replay

    async def both(mirrored: MirroredRequest) -> tuple[ResponsePair, ...]:
        (pair,) = await replay(mirrored)
        return (pair, msgspec.structs.replace(pair, candidate_name="other"))

    rig.replayer.replay = both  # type: ignore[method-assign]
    await rig.run(1)
    assert [p.pair.candidate_name for batch in rig.writer.batches for p in batch.pairs] == ["other"]


async def test_a_batch_whose_partition_was_lost_settles_nothing_and_is_read_again() -> None:
    rig = Rig([envelope("r0"), envelope("r1")])
    rig.writer.error = LostPartitionError("partition 7 was taken away while its rows were written")
    running = asyncio.create_task(rig.run(2))
    await rig.until(lambda: rig.source.reread_partitions != [])
    assert set(rig.source.reread_partitions) == {0}
    assert rig.source.committed == []
    rig.writer.error = None
    rig.source.deliver_all()
    counters = await running
    assert rig.writer.stored == [(0, "compared"), (1, "compared")]
    assert counters.consumed == counters.outcomes == 2


async def test_every_batch_is_written_for_the_epochs_of_its_partitions() -> None:
    rig = Rig([envelope("r0")])
    epochs: list[dict[int, int]] = []

    @contextlib.contextmanager
    def owned(given: Mapping[int, int]) -> Iterator[None]:
        epochs.append(dict(given))
        yield

    rig.pipeline._owned = owned
    await rig.run(1)
    # Once for the pair and once for the range; nothing is written without an owner.
    assert epochs == [{0: 1}, {0: 1}]


async def test_a_held_partition_that_is_released_starts_with_a_clean_slate() -> None:
    values = [b"broken" if n < 51 else envelope(f"r{n}") for n in range(60)]
    rig = Rig(values)
    await rig.run(60)
    assert rig.source.held == [0]
    rig.pipeline.release(0)
    assert rig.source.held == []
    assert not rig.pipeline._letters._rate.is_over(0, is_dead=True)


async def test_a_partition_with_too_many_dead_letters_is_held() -> None:
    values = [b"broken" if n < 51 else envelope(f"r{n}") for n in range(60)]
    rig = Rig(values)
    counters = await rig.run(60)
    assert rig.source.held == [0]
    assert counters.dead_lettered == 51


async def test_fifty_of_a_thousand_are_still_endured() -> None:
    rig = Rig([b"broken" if n < 50 else envelope(f"r{n}") for n in range(60)])
    await rig.run(60)
    assert rig.source.held == []
