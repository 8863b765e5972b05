"""What Prometheus reads of the alert runner, in `gnomon run` and in `gnomon watch` alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from compare.alerts.alert import Severity
from compare.alerts.status import RunnerStatus

_SEVERITIES: tuple[Severity, ...] = ("warning", "critical")


class AlertCollector(Collector):
    """Gauges of one runner, read when asked."""

    def __init__(self, read: Callable[[], RunnerStatus]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """One family each; `gnomon_alerts_firing` has samples only where this process leads."""
        status = self._read()
        yield GaugeMetricFamily(
            "gnomon_alerts_is_leader",
            "1 while this process watches; another one may stand by.",
            value=float(status.is_leader),
        )
        firing = GaugeMetricFamily("gnomon_alerts_firing", "Open alerts.", labels=("severity",))
        if status.is_leader:
            for severity in _SEVERITIES:
                firing.add_metric([severity], status.firing.get(severity, 0))
        yield firing
        if status.last_run_s is not None:
            yield GaugeMetricFamily(
                "gnomon_alerts_last_run_timestamp_seconds",
                "When the last run succeeded, Unix time.",
                value=status.last_run_s,
            )
        yield GaugeMetricFamily(
            "gnomon_alerts_backlog_pairs", "Settled pairs that no detector has seen.", value=status.backlog
        )
        yield CounterMetricFamily(
            "gnomon_alerts_failed_runs", "Runs that an error ended.", value=status.failed_runs
        )
