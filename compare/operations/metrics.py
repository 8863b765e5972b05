"""What Prometheus reads: counters and histograms of what is stored, and the state at the moment of asking.

Names follow section 1 of the design with the prefix `gnomon_`; docs/operations.md lists them all, and the
names that existing dashboards use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from compare.batcher import Completed
from compare.operations.state import ServiceState
from compare.outcomes import ComparedPair
from ingest.observation import Observation

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300)
_STAGE_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300)
_ENTROPY_NATS = (0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 9)
_KL_NATS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)
_RATIO = (0.1, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 1.0)

_SCORES = (
    (
        "kl_forced_mean_nats",
        "gnomon_kl_forced_nats",
        "Mean KL on the reference's tokens, a pair.",
        _KL_NATS,
    ),
    ("cosine_similarity", "gnomon_cosine_similarity", "Cosine of the two answers, a pair.", _RATIO),
    ("edit_similarity", "gnomon_edit_similarity", "Edit similarity of the two answers, a pair.", _RATIO),
    ("field_agreement", "gnomon_field_agreement", "Share of JSON fields that agree, a pair.", _RATIO),
)


class ServiceMetrics:
    """An Observer with a registry of its own; nothing is global, so that two runs in a process do not mix."""

    def __init__(self, state: ServiceState) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        registry.register(_StateCollector(state))
        self._pairs = Counter(
            "gnomon_pairs", "Response pairs stored.", ("candidate", "verdict"), registry=registry
        )
        self._regressions = Counter(
            "gnomon_regressions",
            "Pairs where the candidate is worse or errs.",
            ("candidate",),
            registry=registry,
        )
        self._findings = Counter(
            "gnomon_findings", "Faults found, an answer and family once.", ("endpoint", "role", "family"),
            registry=registry,
        )  # fmt: skip
        self._invalid = Counter(
            "gnomon_schema_invalid",
            "Answers that break the structure that was asked for.",
            ("endpoint", "role"),
            registry=registry,
        )
        self._failures = Counter(
            "gnomon_endpoint_failures",
            "Answers that were an error, a hang or a cut stream.",
            ("endpoint", "role", "kind"),
            registry=registry,
        )
        self._latency = _histogram("gnomon_endpoint_seconds", "Whole answers.", registry, _SECONDS)
        self._first_token = _histogram(
            "gnomon_endpoint_first_token_seconds", "First tokens.", registry, _SECONDS
        )
        self._entropy = _histogram(
            "gnomon_answer_entropy_nats", "Lower bound of an answer's mean entropy.", registry, _ENTROPY_NATS
        )
        self._stages = Histogram(
            "gnomon_stage_seconds", "A record's time in a stage, waiting there included.", ("stage",),
            buckets=_STAGE_SECONDS, registry=registry,
        )  # fmt: skip
        self._scores = {
            name: Histogram(metric, what, ("candidate",), buckets=buckets, registry=registry)
            for name, metric, what, buckets in _SCORES
        }

    def settled(self, completed: Completed) -> None:
        """Count one record whose outcome is stored."""
        if completed.trail is not None:
            for stage, began, ended in completed.trail.stages:
                self._stages.labels(stage).observe((ended - began) / 1e9)
        for number, compared in enumerate(completed.pairs):
            self._pair(compared)
            self._side(compared, "candidate")
            if number == 0:
                # The reference is asked once for all candidates.
                self._side(compared, "reference")

    def _pair(self, compared: ComparedPair) -> None:
        candidate, verdict = compared.pair.candidate_name, compared.comparison.verdict
        self._pairs.labels(candidate, verdict.kind.value).inc()
        if verdict.is_regression:
            self._regressions.labels(candidate).inc()
        for name, histogram in self._scores.items():
            value = compared.comparison.scores.values.get(name)
            if value is not None:
                histogram.labels(candidate).observe(value)

    def _side(self, compared: ComparedPair, role: str) -> None:
        pair, comparison = compared.pair, compared.comparison
        endpoint = pair.candidate_name if role == "candidate" else pair.reference_name
        observation: Observation = pair.candidate if role == "candidate" else pair.reference
        if observation.failure is not None:
            self._failures.labels(endpoint, role, observation.failure.kind.value).inc()
        if observation.timings is not None:
            self._latency.labels(endpoint, role).observe(observation.timings.total_ms / 1000)
            if observation.timings.first_token_ms is not None:
                self._first_token.labels(endpoint, role).observe(observation.timings.first_token_ms / 1000)
        families = {one.family.value for one in comparison.findings if one.side == role and one.is_fault}
        for family in families:
            self._findings.labels(endpoint, role, family).inc()
        scores = comparison.scores.values
        entropy = scores.get(f"entropy_{role}_lower_nats")
        if entropy is not None:
            self._entropy.labels(endpoint, role).observe(entropy)
        if 0.0 in (scores.get(f"{role}_is_valid_json"), scores.get(f"{role}_is_schema_valid")):
            self._invalid.labels(endpoint, role).inc()


class _StateCollector(Collector):
    """Reads the service's state when Prometheus asks."""

    def __init__(self, state: ServiceState) -> None:
        self._state = state

    def describe(self) -> Iterable[Metric]:
        """Nothing is read at registration."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Read it."""
        yield from self._records()
        yield from self._partitions()
        yield from self._endpoints()

    def _records(self) -> Iterator[Metric]:
        state, counters = self._state, self._state.counters
        info = InfoMetricFamily("gnomon_build", "What runs.")
        info.add_metric([], {"version": version("gnomon"), "experiment": state.experiment})
        yield info
        yield _gauge("gnomon_ready", "1 while the service takes records.", float(not state.why_not_ready()))
        for name, what, count in (
            ("consumed", "Records that Kafka delivered, counted by offset ranges.", counters.consumed),
            ("delivered", "Records taken up, stored or not.", counters.delivered),
            ("compared", "Records compared and stored.", counters.compared),
            ("dead_lettered", "Records that cannot be decoded or stored.", counters.dead_lettered),
            ("already_stored", "Records whose outcome was stored before.", counters.already_stored),
            ("lost", "Offsets that retention removed before they were read.", counters.lost),
        ):
            yield CounterMetricFamily(f"gnomon_records_{name}", what, value=count)
        for name, what, by_reason in (
            ("skipped", "Records left out on purpose.", counters.skipped),
            ("failed", "Records that say nothing about the models.", counters.failed),
        ):
            family = CounterMetricFamily(f"gnomon_records_{name}", what, labels=("reason",))
            for reason, count in sorted(by_reason.items()):
                family.add_metric([reason], count)
            yield family
        records, size = state.waiting()
        yield _gauge("gnomon_queue_records", "Records delivered and not taken up yet.", records)
        yield _gauge("gnomon_queue_bytes", "Their bytes.", size)
        yield _gauge("gnomon_outstanding_records", "Delivered, not stored yet.", state.outstanding())

    def _partitions(self) -> Iterator[Metric]:
        lag = GaugeMetricFamily("gnomon_partition_lag_records", "Records not read.", labels=("partition",))
        position = GaugeMetricFamily("gnomon_partition_position", "Next offset.", labels=("partition",))
        held = GaugeMetricFamily(
            "gnomon_partition_held", "1 while paused for its dead letters.", labels=("partition",)
        )
        for partition, progress in sorted(self._state.progress().items()):
            position.add_metric([str(partition)], progress.position)
            held.add_metric([str(partition)], float(partition in self._state.held()))
            if progress.highwater is not None:
                lag.add_metric([str(partition)], max(0, progress.highwater - progress.position))
        yield from (lag, position, held)

    def _endpoints(self) -> Iterator[Metric]:
        endpoints = sorted(self._state.endpoints.items())
        for name, what, read in (
            ("in_flight_requests", "Calls that are out.", lambda e: e.admission.in_flight),
            ("in_flight_bytes", "Bytes of calls that are out.", lambda e: e.admission.in_flight_bytes),
            ("waiting_requests", "Calls that wait for their turn.", lambda e: e.admission.waiting),
            ("breaker_open", "1 while nothing is sent to it.", lambda e: float(e.admission.breaker.is_open)),
            ("paused", "1 while paused by command.", lambda e: float(e.admission.is_paused)),
            ("tokens_today", "Tokens it computed for us this UTC day.", lambda e: e.budget.used()),
        ):
            family = GaugeMetricFamily(f"gnomon_endpoint_{name}", what, labels=("endpoint",))
            for endpoint, state in endpoints:
                family.add_metric([endpoint], read(state))
            yield family
        openings = CounterMetricFamily(
            "gnomon_endpoint_breaker_openings", "How often its breaker opened.", labels=("endpoint",)
        )
        for endpoint, state in endpoints:
            openings.add_metric([endpoint], state.admission.breaker.openings)
        yield openings


def _histogram(name: str, what: str, registry: CollectorRegistry, buckets: tuple[float, ...]) -> Histogram:
    return Histogram(name, what, ("endpoint", "role"), buckets=buckets, registry=registry)


def _gauge(name: str, what: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, what, value=value)
