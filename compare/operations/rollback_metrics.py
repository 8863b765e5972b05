"""What Prometheus reads of rollback conditions, in `gnomon run` and in `gnomon watch` alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import get_args

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from compare.rollback.condition import LETTERS, State
from compare.rollback.decisions import Evaluation


class RollbackCollector(Collector):
    """Gauges of one runner, read when asked; without samples where another process evaluates."""

    def __init__(self, read: Callable[[], Mapping[str, Evaluation]]) -> None:
        self._read = read

    def describe(self) -> tuple[Metric, ...]:
        """Nothing is read at registration."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """One family each."""
        called = GaugeMetricFamily(
            "gnomon_rollback_called", "1 while a rollback is called for.", labels=("candidate",)
        )
        states = GaugeMetricFamily(
            "gnomon_rollback_condition",
            "1 for the state that a condition is in, 0 for the others.",
            labels=("candidate", "condition", "state"),
        )
        at = GaugeMetricFamily(
            "gnomon_rollback_evaluated_timestamp_seconds", "Of the last evaluation.", labels=("candidate",)
        )
        for candidate, one in sorted(self._read().items()):
            called.add_metric([candidate], float(one.is_called))
            at.add_metric([candidate], one.evaluated_at.timestamp())
            for letter, state in zip(
                LETTERS, (one.condition_a, one.condition_b, one.condition_c), strict=True
            ):
                for known in get_args(State):
                    states.add_metric([candidate, letter, known], float(state == known))
        yield from (called, states, at)
