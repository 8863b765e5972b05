"""Runs the cases of a set against one endpoint: asks, compares, judges. Nothing is stored here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from compare.golden.case import GoldenCase
from compare.golden.score import Asked, CaseResult, away, pair_of, result_of
from compare.result import Comparison
from ingest.errors import DeadLetterError, RetryError
from ingest.observation import Observation
from ingest.pair import Mode, ResponsePair
from ingest.records import MirroredRequest
from ingest.replay_body import ReplayBody
from ingest.settings import ExperimentSettings

AT_ONCE = 16
"""Cases under way: how many of them are out is the endpoint's own limit."""

CompareAll = Callable[[Sequence[ResponsePair]], Awaitable[list[Comparison | DeadLetterError]]]
"""Compares pairs, one result for each, in order (`CompareStage.compare`)."""


class AsksGolden(Protocol):
    """What `Replayer` does for a golden run."""

    async def ask_golden(self, mirrored: MirroredRequest, name: str) -> tuple[ReplayBody, Mode, Observation]:
        """See `Replayer.ask_golden`."""
        ...


async def run_cases(
    cases: Sequence[GoldenCase],
    replayer: AsksGolden,
    compare: CompareAll,
    experiment: ExperimentSettings,
    endpoint: str,
    *,
    least_case_score: float,
    on_progress: Callable[[int], None] = lambda done: None,
) -> list[CaseResult]:
    """Ask every case and judge its answer; one result for each, in order.

    A case that cannot be asked is `away`, whatever the reason, and never raises; `on_progress` is told
    how many are through. Raises FatalError where the endpoint refuses our credentials, and what the
    comparison raises.
    """
    slots, done = asyncio.Semaphore(AT_ONCE), 0

    async def one(case: GoldenCase) -> CaseResult:
        nonlocal done
        async with slots:
            result = await _run_case(case, replayer, compare, experiment, endpoint, least_case_score)
        done += 1
        on_progress(done)
        return result

    tasks = [asyncio.ensure_future(one(case)) for case in cases]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _run_case(
    case: GoldenCase,
    replayer: AsksGolden,
    compare: CompareAll,
    experiment: ExperimentSettings,
    endpoint: str,
    least_case_score: float,
) -> CaseResult:
    try:
        body, mode, observation = await replayer.ask_golden(case.mirrored(), endpoint)
    except (RetryError, DeadLetterError) as error:
        return away(case, str(error))
    asked = Asked(body=body.body, changes=body.changes, mode=mode, observation=observation)
    (comparison,) = await compare([pair_of(case, asked, experiment, endpoint)])
    if isinstance(comparison, DeadLetterError):
        return away(case, str(comparison))
    return result_of(case, observation, comparison, least_case_score)
