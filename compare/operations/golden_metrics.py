"""What Prometheus reads of golden runs, in `gnomon run` and in `gnomon watch` alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from compare.golden.run import GoldenRun

_LABELS = ("set", "endpoint")


class GoldenCollector(Collector):
    """Gauges of the last whole scheduled run of each endpoint, whichever process made it; read when asked."""

    def __init__(self, read: Callable[[], Sequence[GoldenRun]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """One family each, without samples before the first run."""
        score = GaugeMetricFamily("gnomon_golden_mean_score", "Mean score of the last run.", labels=_LABELS)
        passed = GaugeMetricFamily("gnomon_golden_passed", "1 if the last run passed.", labels=_LABELS)
        ended = GaugeMetricFamily(
            "gnomon_golden_last_run_timestamp_seconds", "When the last run ended, Unix time.", labels=_LABELS
        )
        for run in self._read():
            labels = [run.set_name, run.endpoint_name]
            if run.totals.mean_score is not None:
                score.add_metric(labels, run.totals.mean_score)
            passed.add_metric(labels, float(run.is_passed))
            ended.add_metric(labels, run.finished_at.timestamp())
        yield from (score, passed, ended)
