"""The pipeline over fakes: how a run ends, stopped or by a fault that no waiting mends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from compare.result import Comparison
from ingest.errors import DeadLetterError, EndpointAwayError, FatalError
from ingest.pair import ResponsePair
from ingest.records import MirroredRequest
from ingest.settings import DeliverySettings
from tests.compare.pipeline_rig import Rig, envelope


async def test_a_record_that_waits_for_an_endpoint_at_the_end_is_left_for_the_next_run() -> None:
    async def behave(mirrored: MirroredRequest) -> None:
        await rig.replayer.is_resting.wait()
        raise EndpointAwayError("endpoint cand: paused by command")

    rig = Rig([envelope("r0")], behave=behave)
    running = asyncio.create_task(rig.run(1))
    await rig.until(lambda: rig.replayer.in_flight == 1)
    rig.pipeline.stop()
    counters = await running
    assert (counters.outcomes, rig.source.committed) == (0, [])


async def test_stopping_drains_what_is_under_way_and_leaves_the_rest() -> None:
    release = asyncio.Event()

    async def behave(mirrored: MirroredRequest) -> None:
        await release.wait()

    rig = Rig([envelope(f"r{n}") for n in range(100)], behave=behave)
    running = asyncio.create_task(rig.run(100))
    await rig.until(lambda: rig.replayer.in_flight == 4)
    rig.pipeline.stop()
    await asyncio.sleep(0.05)
    release.set()
    counters = await running
    assert rig.writer.stored == [(offset, "compared") for offset in range(4)]
    assert rig.source.committed == [4]
    assert counters.consumed == counters.outcomes == 4


async def test_a_request_that_hangs_through_the_drain_is_given_up_and_not_committed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def behave(mirrored: MirroredRequest) -> None:
        if mirrored.request_id == "r1":
            await asyncio.Event().wait()

    delivery = DeliverySettings(
        batch_seconds=0.02, commit_interval_s=0.02, drain_seconds=0.2, max_in_flight_requests=4
    )
    rig = Rig([envelope(f"r{n}") for n in range(3)], behave=behave, delivery=delivery)
    running = asyncio.create_task(rig.run(3))
    await rig.until(lambda: len(rig.writer.stored) == 2)
    rig.pipeline.stop()
    await running
    assert rig.writer.stored == [(0, "compared"), (2, "compared")]
    assert rig.source.committed == [1]
    assert caplog.messages == ["records given up after 0.2 s: 1; they are delivered again"]


async def test_stopping_while_the_store_is_away_ends_without_a_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("compare.pipeline._LEAST_FLUSH_S", 0.1)
    delivery = DeliverySettings(batch_seconds=0.02, commit_interval_s=0.02, drain_seconds=0.1)
    rig = Rig([envelope("r0")], delivery=delivery)
    rig.writer.may_write.clear()
    running = asyncio.create_task(rig.run(1))
    await rig.until(lambda: rig.source.taken == 1)
    rig.pipeline.stop()
    counters = await running
    assert rig.source.committed == []
    assert counters.outcomes == 0


async def test_stopping_while_kafka_is_not_there_yet_ends_at_once() -> None:
    rig = Rig([])

    async def never() -> None:
        await asyncio.Event().wait()

    rig.source.start = never  # type: ignore[method-assign]
    running = asyncio.create_task(rig.run(1))
    await asyncio.sleep(0.02)
    rig.pipeline.stop()
    counters = await running
    assert counters.delivered == 0


async def test_a_store_that_refuses_for_good_ends_the_run_without_a_commit() -> None:
    rig = Rig([envelope("r0")])
    rig.writer.error = FatalError("store http://x: wrong password")
    with pytest.raises(FatalError, match="wrong password"):
        await rig.run(1)
    assert rig.source.committed == []


async def test_a_defect_in_the_comparison_ends_the_run() -> None:
    def compare(pairs: Sequence[ResponsePair]) -> list[Comparison | DeadLetterError]:
        raise ZeroDivisionError("defect")

    rig = Rig([envelope("r0")], compare=compare)
    with pytest.raises(ZeroDivisionError):
        await rig.run(1)
    assert rig.writer.batches == []
