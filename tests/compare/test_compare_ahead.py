"""Two groups on their way to the comparison's process: one is compared while the next is sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from compare.compare_process import CompareProcess
from compare.compare_stage import CompareStage
from compare.result import Comparison
from ingest.errors import DeadLetterError, RetryError
from ingest.pair import ResponsePair
from tests.compare.children import obeying
from tests.compare.orders import named, outcomes
from tests.compare.test_comparison import _SETTINGS

Outcome = Future[list[Comparison | DeadLetterError]]


@pytest.fixture(scope="module")
def process() -> Iterator[CompareProcess]:
    """One for all tests: it comes back from whatever they do to it."""
    with CompareProcess(_SETTINGS, obeying) as made:
        yield made


def both_sent(
    process: CompareProcess, path: Path, first: Sequence[str], second: Sequence[str]
) -> tuple[Outcome, Outcome]:
    """What becomes of two batches, the first of which the child goes on with when it has the second."""
    process(())
    send_ahead, sent = process._sent_ahead, count(1)

    def noting(pairs: Sequence[ResponsePair]) -> object:
        done = send_ahead(pairs)
        if next(sent) == 2:
            assert done is not None
            path.touch()
        return done

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as threads:
        patch.setattr(process, "_sent_ahead", noting)
        one = threads.submit(process, [named(f"until {path}"), *map(named, first)])
        while not process._first.locked():
            time.sleep(0.001)
        return one, threads.submit(process, list(map(named, second)))


def test_a_batch_behind_one_that_kills_the_child_is_compared_and_loses_no_try(
    process: CompareProcess, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    go, killed, also = (tmp_path / name for name in ("go", "killed", "also"))
    one, other = both_sent(process, go, [f"kill-once {killed}", "b"], ["c", f"kill-once {also}"])
    assert outcomes(one.result()) == [f"until {go}", f"kill-once {killed}", "b"]
    assert outcomes(other.result()) == ["c", f"kill-once {also}"]
    # Each was killed once, and nothing was halved.
    assert [message.partition(" in mid-batch")[2] for message in caplog.messages] == [
        "; what it had is compared again"
    ] * 2


def test_each_of_two_batches_that_kill_loses_its_own_pair_only(
    process: CompareProcess, tmp_path: Path
) -> None:
    one, other = both_sent(process, tmp_path / "go", ["kill"], ["kill", "d"])
    assert outcomes(one.result())[1:] == ["comparison_failed"]
    assert outcomes(other.result()) == ["comparison_failed", "d"]


def test_a_batch_behind_one_with_a_defect_is_compared(process: CompareProcess, tmp_path: Path) -> None:
    process(())
    pid = process.pid
    one, other = both_sent(process, tmp_path / "go", ["defect of a score", "b"], ["c"])
    with pytest.raises(RuntimeError, match=r"^ZeroDivisionError: of a score$"):
        one.result()
    assert outcomes(other.result()) == ["c"]
    assert process.pid == pid


async def test_large_pairs_and_large_results_do_not_wait_for_each_other(process: CompareProcess) -> None:
    """The pipe holds some 0.2 MB; each pair and each result is 1 MB, and eight are a group."""
    stage = CompareStage(process, max_pairs=8)
    running = asyncio.create_task(stage.run())
    names = [f"{number} " + "x" * 1_000_000 for number in range(40)]
    async with asyncio.timeout(120):
        found = await asyncio.gather(*[stage.compare([named(name)]) for name in names])
    assert [outcome for results in found for outcome in outcomes(results)] == names
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await stage.close()


async def test_a_stage_that_closes_in_mid_batch_waits_for_neither_group() -> None:
    with CompareProcess(_SETTINGS, obeying) as process:
        stage = CompareStage(process, max_pairs=1)
        running = asyncio.create_task(stage.run())
        comparing = [asyncio.create_task(stage.compare([named("sleep 600")])) for _ in range(2)]
        while len(stage._under_way) < 2 or not stage._queue.empty():
            await asyncio.sleep(0.01)
        await asyncio.to_thread(_until_it_sleeps, process)
        running.cancel()
        for task in comparing:
            task.cancel()
        await asyncio.gather(running, *comparing, return_exceptions=True)
        async with asyncio.timeout(60):
            await stage.close()
        with pytest.raises(RetryError, match="given up"):
            process([named("a")])


def _until_it_sleeps(process: CompareProcess) -> None:
    """Until the child is ready and has read the pair."""
    while not process._is_ready:
        time.sleep(0.01)
