"""Golden runs, their cases, and how a rollback stands, beside synthetic pairs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np

from compare.golden.run_log import write_run
from compare.golden.sets import promote, write_cases
from compare.rollback.condition import Condition, Conditions, State, to_json
from compare.rollback.decisions import Decision, Evaluation, write_decision, write_evaluation
from compare.rollback.snapshots import Snapshot, add
from compare.store import Store
from tests.compare.golden.rig import case, result, run

CANDIDATE = "q4"
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def fill_golden(store: Store, experiment: str, newest: datetime, rng: np.random.Generator) -> None:
    """60 runs of one set, three hours apart, the first its baseline."""
    name = f"core-{experiment}"
    cases = [case(f"case-{n:03d}", "a fine answer " * 20) for n in range(200)]
    write_cases(store, name, cases)
    hashes = {one.case_id: one.case_hash() for one in cases}
    for number in range(60):
        scores = rng.beta(20, 2, len(cases))
        results = [
            result(
                one.case_id,
                float(score),
                "passed" if score > 0.75 else "failed",
                case_hash=hashes[one.case_id],
            )
            for one, score in zip(cases, scores, strict=True)
        ]
        began = newest - (60 - number) * 3 * HOUR
        told: dict[str, Any] = {"started_at": began, "finished_at": began + 2 * MINUTE}
        told |= {"set_name": name, "experiment": experiment, "endpoint_name": CANDIDATE}
        told |= {"run_id": f"{experiment}{number:04d}", "baseline_run_id": f"{experiment}0000"}
        write_run(store, run(number, float(scores.mean()), **told), results, None)
    promote(store, name, f"{experiment}0000", "bench")


def fill_rollback(store: Store, experiment: str, newest: datetime) -> None:
    """A condition that came and went for four days, the last look, and ten snapshots."""
    evidence = {"pairs": 600, "window_s": 600.0}
    states: tuple[State, State] = ("quiet", "firing")
    for number in range(1, 101):
        conditions = Conditions(
            Condition("quiet", "every set is as it was", {"sets": []}),
            Condition(states[number % 2], "12 of 600 requests faulty", evidence),
            Condition("off", "no rule is set"),
        )
        a, b, c = conditions.states
        decision = Decision(
            experiment=experiment,
            candidate=CANDIDATE,
            number=number,
            decision_id="",
            event="conditions",
            is_called=False,
            condition_a=a,
            condition_b=b,
            condition_c=c,
            decided_at=newest - (100 - number) * HOUR,
            called_at=None,
            summary=conditions.reason(),
            evidence=to_json(conditions),
            settings_hash="s",
            served_hash="v",
        )
        write_decision(store, decision, number)
    last = Evaluation(
        experiment=experiment,
        candidate=CANDIDATE,
        evaluated_at=newest,
        evaluated_by="bench",
        interval_s=60.0,
        says="no",
        is_called=False,
        decision_id="",
        held=0,
        clear=3,
        condition_a=a,
        condition_b=b,
        condition_c=c,
        evidence=to_json(conditions),
        version=1,
    )
    write_evaluation(store, last, "[]")
    for number in range(10):
        snapshot = Snapshot(
            experiment=experiment,
            name=f"snapshot-{number}",
            endpoint_name=CANDIDATE,
            added_at=newest - number * HOUR,
            added_by="bench",
            source="file",
            golden_set=f"core-{experiment}",
            golden_run_id=f"{experiment}{number:04d}",
        )
        add(store, snapshot)
