"""A whole golden run: reads the set, runs it, compares with the baseline, stores what came of it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

import msgspec

from compare.compare_process import CompareProcess
from compare.compare_stage import CompareStage
from compare.golden.case import GoldenCase, set_hash
from compare.golden.execute import AsksGolden, CompareAll, run_cases
from compare.golden.run import (
    Changes,
    GoldenRun,
    Limits,
    StartedBy,
    changes_since,
    judged,
    totals_of,
)
from compare.golden.run_log import baseline_of, read_known, write_run
from compare.golden.score import CaseResult
from compare.isolation import IsolationRunner
from compare.served_watch import role_of, served_hash
from compare.store.client import Store
from ingest.errors import FatalError
from ingest.load_settings import settings_hash
from ingest.redact import Redactor, redactor_of
from ingest.replay import Replayer
from ingest.served import served_by
from ingest.settings import Settings, endpoint_names


class Outcome(msgspec.Struct, frozen=True):
    """A run, its results in the order of the cases, and what changed against the baseline if there is one."""

    run: GoldenRun
    results: tuple[CaseResult, ...]
    changes: Changes | None


class Session(msgspec.Struct, frozen=True):
    """What runs are made with. `store` is called from a thread, one call at a time."""

    store: Store
    settings: Settings
    replayer: AsksGolden
    compare: CompareAll
    redactor: Redactor | None

    async def run(
        self,
        set_name: str,
        cases: Sequence[GoldenCase],
        endpoint: str,
        started_by: StartedBy,
        limits: Limits,
        on_progress: Callable[[int], None] = lambda done: None,
    ) -> Outcome:
        """Run the cases against one endpoint and store what came of it.

        A run in whose course the endpoint began to serve something else is `incomplete`: nobody could
        say which of the two it judged. Raises what `run_cases` and the store raise; then nothing is stored.
        """
        settings, experiment = self.settings, self.settings.experiment
        asked = settings.endpoints[endpoint]
        before = await served_by(endpoint, asked)
        started_at = datetime.now(UTC)
        results = await run_cases(
            cases,
            self.replayer,
            self.compare,
            experiment,
            endpoint,
            least_case_score=settings.golden.least_case_score,
            on_progress=on_progress,
        )
        finished_at = datetime.now(UTC)
        after = await served_by(endpoint, asked)
        is_changed = before.is_known() and after.is_known() and before != after
        served = after if after.is_known() else before
        baseline = await asyncio.to_thread(baseline_of, self.store, set_name)
        changes = None
        if baseline is not None:
            known = await asyncio.to_thread(read_known, self.store, baseline, set_name)
            changes = changes_since(known, results)
        totals = totals_of(results)
        disturbed = "the endpoint began to serve something else in mid-run" if is_changed else ""
        status, reasons = judged(totals, limits, disturbed)
        run = GoldenRun(
            set_name=set_name,
            run_id=uuid.uuid4().hex,
            set_hash=set_hash(cases),
            experiment=experiment.name,
            settings_hash=settings_hash(settings),
            role=role_of(experiment, endpoint),
            endpoint_name=endpoint,
            started_by=started_by,
            started_at=started_at,
            finished_at=finished_at,
            status=status,
            reasons=reasons,
            totals=totals,
            least_mean_score=limits.least_mean_score,
            served=served,
            served_hash=served_hash(served),
            baseline_run_id=baseline,
            newly_failing=len(changes.newly_failing) if changes else None,
            newly_passing=len(changes.newly_passing) if changes else None,
        )
        await asyncio.to_thread(write_run, self.store, run, results, self.redactor)
        return Outcome(run, tuple(results), changes)


def asked_endpoints(settings: Settings, names: Sequence[str] = ()) -> list[str]:
    """The endpoints to run against: those named, else those of `[golden]`, else the candidates.

    Raises FatalError for one that is not of the experiment.
    """
    known = endpoint_names(settings.experiment)
    wanted = list(dict.fromkeys(names or settings.golden.endpoints or settings.experiment.candidates))
    for name in wanted:
        if name not in known:
            raise FatalError(
                f'endpoint "{name}" is not of experiment {settings.experiment.name}, '
                f"which has: {', '.join(known)}"
            )
    return wanted


def run_alone(
    settings: Settings,
    store: Store,
    set_name: str,
    cases: Sequence[GoldenCase],
    endpoints: Sequence[str],
    started_by: StartedBy,
    limits: Limits,
    *,
    on_progress: Callable[[str, int], None] = lambda endpoint, done: None,
) -> list[Outcome]:
    """Run a set against endpoints, one after the other, with a replayer and a comparison of its own.

    Pauses by command are obeyed, and the tokens count in the budgets of the day. Blocks. Raises FatalError,
    one line, if it cannot go on.
    """
    with ExitStack() as stack:
        # It loads its model while the endpoints are asked.
        compare = stack.enter_context(CompareProcess(settings))
        own = stack.enter_context(store.another())
        counting = stack.enter_context(store.another())
        alone = _Alone(settings, own, counting, compare)
        return asyncio.run(alone.run(set_name, cases, endpoints, started_by, limits, on_progress))


class _Alone(msgspec.Struct):
    settings: Settings
    store: Store
    counting: Store
    compare: CompareProcess

    async def run(
        self,
        set_name: str,
        cases: Sequence[GoldenCase],
        endpoints: Sequence[str],
        started_by: StartedBy,
        limits: Limits,
        on_progress: Callable[[str, int], None],
    ) -> list[Outcome]:
        settings, experiment = self.settings, self.settings.experiment
        replayer, stage = Replayer(experiment, settings.endpoints), CompareStage(self.compare)
        session = Session(self.store, settings, replayer, stage.compare, redactor_of(settings.redaction))
        isolation = IsolationRunner(self.counting, experiment.name, replayer.endpoints)
        await asyncio.to_thread(isolation.read)
        await replayer.start()

        async def all_runs() -> list[Outcome]:
            done = []
            for name in endpoints:

                def tell(count: int, name: str = name) -> None:
                    on_progress(name, count)

                done.append(await session.run(set_name, cases, name, started_by, limits, tell))
            return done

        comparing = asyncio.ensure_future(stage.run())
        running = asyncio.ensure_future(all_runs())
        try:
            async with isolation.running():
                await asyncio.wait((comparing, running), return_when=asyncio.FIRST_COMPLETED)
                if not running.done():
                    # It never ends by itself but by an error.
                    await comparing
                return await running
        finally:
            for task in (running, comparing):
                task.cancel()
            await asyncio.gather(running, comparing, return_exceptions=True)
            await stage.close()
            await replayer.close()
