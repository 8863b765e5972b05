"""Runs stored requests through the pipeline, as a new experiment."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import msgspec

from compare.compare_process import CompareProcess
from compare.compare_stage import Compare
from compare.counters import Counters
from compare.fence import wait_out_inserts
from compare.isolation import IsolationRunner
from compare.near_tie import near_tie_nats
from compare.pipeline import Pipeline
from compare.purged import PurgedPositions, read_purged
from compare.redacted_logs import redacted_logs
from compare.register import register_experiment
from compare.reprocess.alone import AloneInserts, replaying_alone
from compare.reprocess.answers import KnownAnswers
from compare.reprocess.done import Done, StoredBefore, read_done
from compare.reprocess.experiment import group_of, require_new_or_own
from compare.reprocess.intake import StoredIntake
from compare.reprocess.ledger import ReplayLedger
from compare.reprocess.selection import Selected, Wanted, find_source, select
from compare.reprocess.source import ReplaySource
from compare.reprocess.stored import read_stored
from compare.rollups.runner import RollupRunner
from compare.served_watch import ServedWatch
from compare.stop_signals import StopSignals
from compare.store import migrate
from compare.store.client import Store, open_store
from compare.sweeper import Sweeper
from compare.writer import Writer
from ingest.records import RawRecord, SourcePosition
from ingest.redact import Redactor, redactor_of
from ingest.replay import Replayer
from ingest.settings import Settings

_log = logging.getLogger(__name__)


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How requests are run. `asks_kafka`: the records are looked for there first."""

    reuses_answers: bool = True
    allow_redacted: bool = False
    asks_kafka: bool = True


class ReplayPlan(msgspec.Struct, frozen=True):
    """What was found: `selected` of `source`, of which `remaining` are to be run yet."""

    source: str
    selected: int
    remaining: Selected
    done: Done


class ReplayReport(msgspec.Struct, frozen=True):
    """What became of the requests; `came_from` and `answers` count as `ReplaySource` and `KnownAnswers` do.

    `is_whole` says that each was taken up; else the run was stopped.
    """

    compared: int
    skipped: dict[str, int]
    failed: dict[str, int]
    dead_lettered: int
    already_stored: int
    came_from: dict[str, int]
    answers: dict[str, int]
    is_whole: bool


def plan_replay(
    store: Store, reader: Store, settings: Settings, wanted: Wanted, source: str | None
) -> ReplayPlan:
    """Find what is to be run; changes nothing but the schema, which is brought up to date.

    `reader` may only read: the condition of `wanted` runs there. Raises FatalError, one line, for a
    name, a source or a condition that will not do.
    """
    migrate.apply(store, settings.store)
    experiment = settings.experiment
    require_new_or_own(store, settings)
    found = find_source(reader, wanted, experiment.name, source)
    selected = select(reader, wanted, found)
    done = read_done(store, experiment.name, group_of(experiment.name), experiment.candidates)
    return ReplayPlan(found, len(selected), done.remaining(selected), done)


def run_replay(
    settings: Settings,
    store: Store,
    plan: ReplayPlan,
    options: ReplayOptions,
    *,
    on_progress: Callable[[Counters], None] | None = None,
    signals: StopSignals | None = None,
) -> ReplayReport:
    """Run what the plan found, until all has its outcome or a signal comes; then the rollups are rebuilt.

    Run again after a kill, with the same settings and choice, it goes on where it was. Raises FatalError if
    it cannot begin or go on, as when another process replays into the same experiment.
    """
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    redactor = redactor_of(settings.redaction)
    with ExitStack() as stack:
        if signals is None:
            signals = stack.enter_context(StopSignals())
        stack.enter_context(redacted_logs(redactor))
        lease = stack.enter_context(replaying_alone(store, settings))
        # Another one may have begun, or have ended, since the plan was made.
        require_new_or_own(store, settings)
        register_experiment(store, settings)
        plan = _as_of_now(store, settings, plan)
        _clear(store, settings, plan)
        # The floor that the source experiment has shown: the same reference, the same requests.
        limit = near_tie_nats(store, plan.source, settings.compare.near_tie_nats)
        comparing = msgspec.structs.replace(settings.compare, near_tie_nats=limit)
        compare = stack.enter_context(CompareProcess(msgspec.structs.replace(settings, compare=comparing)))
        inserts = AloneInserts(store, lease)
        replay = _Replay(
            settings, store, inserts, plan, options, compare, redactor, read_purged(store), signals
        )
        experiment = settings.experiment
        # A stored answer of the reference was made by what served then: that it serves the same is not known.
        asked = experiment.candidates if options.reuses_answers else None
        watch = ServedWatch(stack.enter_context(open_store(settings.store, role="any")), settings, asked)
        # Before the first answer: what is seen later is not taken for what made it.
        watch.run_once()
        watch.start(at_once=False)
        stack.callback(watch.stop)
        report = asyncio.run(replay.run(on_progress))
        RollupRunner(stack.enter_context(open_store(settings.store, role="any")), settings.store).run_once()
    return report


def _as_of_now(store: Store, settings: Settings, plan: ReplayPlan) -> ReplayPlan:
    """The plan, without what another run did since it was made."""
    experiment = settings.experiment
    done = read_done(store, experiment.name, group_of(experiment.name), experiment.candidates)
    return msgspec.structs.replace(plan, done=done, remaining=done.remaining(plan.remaining))


def _clear(store: Store, settings: Settings, plan: ReplayPlan) -> None:
    """Wait out what a killed run still inserts, and take out the halves that it left."""
    name, cluster = settings.experiment.name, settings.store.cluster
    for place, offsets in plan.remaining.offsets.items():
        wait_out_inserts(store, group_of(name), place.topic_id, place.partition, cluster=cluster)
        Sweeper(store, name, cluster=cluster).sweep_from(
            SourcePosition(place.topic, place.topic_id, place.partition, offsets[0])
        )


class _Replay(msgspec.Struct):
    settings: Settings
    store: Store
    inserts: AloneInserts
    plan: ReplayPlan
    options: ReplayOptions
    compare: Compare
    redactor: Redactor | None
    purged: PurgedPositions
    signals: StopSignals

    async def run(self, on_progress: Callable[[Counters], None] | None) -> ReplayReport:
        settings, experiment, selected = self.settings, self.settings.experiment, self.plan.remaining
        group = group_of(experiment.name)
        # Dead letters are rows here: there is no producer whose partition should rest.
        delivery = msgspec.structs.replace(settings.delivery, dead_letter_pause_share=1.0)
        stop_writing = threading.Event()
        with ExitStack() as stack:
            read_store = stack.enter_context(await asyncio.to_thread(self.store.another))
            isolation_store = stack.enter_context(await asyncio.to_thread(self.store.another))
            ledger = ReplayLedger(group, list(selected.offsets))
            source = ReplaySource(
                selected,
                ledger,
                partial(read_stored, read_store, self.plan.source, wants_answers=self.options.reuses_answers),
                delivery,
                settings.kafka if self.options.asks_kafka else None,
                allow_redacted=self.options.allow_redacted,
            )
            known = KnownAnswers(lambda position: source.request(position).answers)
            replayer = Replayer(
                experiment,
                settings.endpoints,
                keeps_answers=settings.store.keep_reference_answers,
                known=known if self.options.reuses_answers else None,
            )
            pipeline = Pipeline(
                experiment=experiment.name,
                source=source,
                ledger=ledger,
                intake=StoredIntake(experiment, source.request, self.purged),
                replayer=replayer,
                compare=self.compare,
                writer=Writer(self.inserts, stop_writing, group=group, redactor=self.redactor),
                dead_letters=_RowsOnly(),
                delivery=delivery,
                stop_writing=stop_writing,
                stored=StoredBefore(self.plan.done),
                on_progress=on_progress,
                observers=[source],
            )
            isolation = IsolationRunner(isolation_store, experiment.name, replayer.endpoints)
            await asyncio.to_thread(isolation.read)
            with self.signals.stopping(pipeline.stop):
                async with isolation.running():
                    counters = await pipeline.run(
                        lambda counters: source.is_exhausted and counters.outcomes >= source.handed_over
                    )
        return ReplayReport(
            compared=counters.compared,
            skipped=dict(counters.skipped),
            failed=dict(counters.failed),
            dead_lettered=counters.dead_lettered,
            already_stored=counters.already_stored,
            came_from=dict(source.counts),
            answers=dict(known.counts),
            is_whole=source.is_exhausted and counters.outcomes >= source.handed_over,
        )


class _RowsOnly:
    """Dead letters go to `dead_letters`; the topic has got the record already, or it is in the mirror."""

    def send(self, raw: RawRecord, reason: str, message: str) -> None:
        """The writer keeps it."""

    def close(self) -> None:
        """Nothing is open."""
