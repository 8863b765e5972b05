"""Evaluates the conditions now and then, decides, and tells. Safe to kill anywhere."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from compare.alerts.fenced import generation_of, next_version
from compare.alerts.scheduler import Ticker
from compare.controls import pauses
from compare.rollback.condition import Condition, Conditions, to_json
from compare.rollback.decisions import (
    Decision,
    Evaluation,
    decided,
    last_decision,
    read_evaluations,
    who,
    write_decision,
    write_evaluation,
)
from compare.rollback.engines import Watch
from compare.rollback.faulty import condition_b, read_counts
from compare.rollback.golden import condition_a, read_golden
from compare.rollback.hysteresis import Standing, fold
from compare.rollback.kept_looks import encode, read_looks
from compare.rollback.tell import Teller, tell
from compare.store.client import Store
from compare.store.table_lease import TableLease, lease_name
from ingest.load_settings import settings_hash
from ingest.settings import Settings

_log = logging.getLogger(__name__)


class RollbackRunner:
    """Watches one experiment's candidates. `store` is used by nothing else.

    Of several runners of an experiment one acts: the one with the lease. What was decided is read from the
    store at each run; the looks at the engines' pages are, where the lease is taken anew.
    """

    def __init__(self, store: Store, settings: Settings, tellers: Sequence[Teller] = ()) -> None:
        self._store = store
        self._settings = settings.rollback
        self._golden = settings.golden
        self._experiment = settings.experiment.name
        self._hash = settings_hash(settings)
        self._tellers = tuple(tellers)
        self._watches = {
            name: Watch(name, settings.endpoints[name], settings.rollback)
            for name in settings.experiment.candidates
        }
        self._lease = TableLease(
            store,
            lease_name("rollback", self._experiment),
            f"the rollback lease of {self._experiment}",
            lease_seconds=settings.alerts.lease_s,
            cluster=settings.store.cluster,
        )
        self._running = threading.Lock()
        self._keeps_lease = False
        self._last: dict[str, Evaluation] = {}
        self._recalled = 0
        """The generation of the lease for which the kept looks were read."""
        self._ticker = Ticker(
            self.run_once, settings.rollback.interval_s, f"rollback conditions of {self._experiment}"
        )

    def read_last(self) -> dict[str, Evaluation]:
        """By candidate, the last evaluation; empty while another process evaluates. From any thread."""
        return dict(self._last) if self._lease.is_held else {}

    def start(self) -> None:
        """Evaluate now and every `interval_s` seconds on a thread of its own."""
        self._keeps_lease = True
        self._ticker.start()

    def stop(self) -> None:
        """Stop after the evaluation that is under way, and give the lease back."""
        self._ticker.stop()
        self._keeps_lease = False
        with self._running:
            self._lease.give_back()

    def run_once(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> list[Decision]:
        """Evaluate every candidate; return what changed. Nothing if another process has the lease.

        Blocks. Raises what the store raises; a page that is away, or a sink, raises nothing.
        """
        with self._running:
            if not self._lead():
                return []
            try:
                self._recall()
                asyncio.run(self._look())
                found = [self._evaluate(name, watch, clock()) for name, watch in self._watches.items()]
                self._lease.check()
                tell(self._store, self._experiment, self._tellers, check=self._lease.check)
            finally:
                if not self._keeps_lease:
                    self._lease.give_back()
            return [decision for decision in found if decision is not None]

    def _lead(self) -> bool:
        if self._lease.is_held:
            return True
        self._lease.give_back()
        written = [one.version for one in read_evaluations(self._store, self._experiment)]
        return self._lease.take(at_least=generation_of(max(written, default=0)) + 1)

    def _recall(self) -> None:
        """Go on from what the holder before us saw of the pages."""
        if self._recalled == self._lease.generation:
            return
        kept = read_looks(self._store, self._experiment)
        for candidate, watch in self._watches.items():
            watch.recall(kept.get(candidate, {}))
        self._recalled = self._lease.generation

    async def _look(self) -> None:
        await asyncio.gather(*(watch.look() for watch in self._watches.values()))

    def _evaluate(self, candidate: str, watch: Watch, at: datetime) -> Decision | None:
        # The store keeps milliseconds: what is compared later is what was stored.
        at = at.replace(microsecond=at.microsecond // 1000 * 1000)
        settings, experiment = self._settings, self._experiment
        conditions = Conditions(
            condition_a(
                read_golden(self._store, experiment, candidate, settings), settings, self._golden, at
            ),
            condition_b(read_counts(self._store, experiment, candidate, settings, at), settings),
            self._condition_c(candidate, watch),
        )
        before = last_decision(self._store, experiment, candidate)
        states = read_evaluations(self._store, experiment, candidate)
        # The decision was written first: a run that died after it is told so by it.
        is_called = before is not None and before.is_called
        standing = Standing(is_called)
        if states and states[0].is_called == is_called:
            standing = states[0].standing
        says = conditions.says()
        standing, _ = fold(
            standing,
            says,
            at,
            hold=settings.hold_evaluations,
            clear=settings.clear_evaluations,
            interval_s=settings.interval_s,
        )
        decision = decided(
            before,
            conditions,
            standing,
            experiment=experiment,
            candidate=candidate,
            at=at,
            settings_hash=self._hash,
            served_hash=self._served(candidate),
        )
        version = next_version(states[0].version if states else 0, self._lease.generation)
        self._lease.check()
        if decision is not None:
            write_decision(self._store, decision, version)
            if decision.event != "conditions":
                _log.warning("rollback of %s %s: %s", candidate, decision.event, decision.summary)
        a, b, c = conditions.states
        named = decision or before
        evaluation = Evaluation(
            experiment=experiment,
            candidate=candidate,
            evaluated_at=at,
            evaluated_by=who(),
            interval_s=settings.interval_s,
            says=says,
            is_called=standing.is_called,
            decision_id=named.decision_id if named is not None and standing.is_called else "",
            held=standing.held,
            clear=standing.clear,
            condition_a=a,
            condition_b=b,
            condition_c=c,
            evidence=to_json(conditions),
            version=version,
        )
        write_evaluation(self._store, evaluation, encode(watch.looks))
        self._last[candidate] = evaluation
        return decision

    def _condition_c(self, candidate: str, watch: Watch) -> Condition:
        for pause in pauses(self._store):
            if pause.scope.covers(self._experiment, candidate):
                return Condition("unknown", f"not judged while paused by command: {pause}")
        return watch.condition()

    def _served(self, candidate: str) -> str:
        rows = self._store.query(
            "SELECT argMax(served_hash, seen_at) FROM served FINAL WHERE experiment = {experiment:String}"
            " AND endpoint_name = {candidate:String} AND settings_hash = {hash:String}",
            {"experiment": self._experiment, "candidate": candidate, "hash": self._hash},
        ).rows
        return str(rows[0][0])
