"""Traces of records, for those who switch them on: one span a record, one below it for each stage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from compare.batcher import Completed
from compare.operations.observers import Observer
from ingest.errors import FatalError
from ingest.replay_plan import share_of
from ingest.settings import OperationsSettings


@contextmanager
def tracing(settings: OperationsSettings, experiment: str, topic: str) -> Iterator[list[Observer]]:
    """Yield the observers that make traces: one, or none where `operations.otlp_url` is not set.

    Spans are sent in batches by a thread of the SDK; a collector that is away costs spans, never records.
    Raises FatalError if the packages are missing.
    """
    if settings.otlp_url is None:
        yield []
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise FatalError(
            f"operations.otlp_url needs OpenTelemetry ({error}): pip install 'gnomon[otel]'"
        ) from error
    resource = Resource.create({"service.name": "gnomon", "service.version": version("gnomon")})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.otlp_url)))
    try:
        yield [RecordTracer(provider.get_tracer("gnomon"), experiment, topic, settings.trace_fraction)]
    finally:
        provider.shutdown()


class RecordTracer:
    """An Observer that makes the spans of a record once it is stored, with the times of its trail.

    Attributes are ids and codes, never a word of a prompt or an answer.
    """

    def __init__(self, tracer: Any, experiment: str, topic: str, fraction: float) -> None:
        self._tracer = tracer
        self._experiment = experiment
        self._topic = topic
        self._fraction = fraction

    def settled(self, completed: Completed) -> None:
        """Make the spans of one record."""
        trail = completed.trail
        if trail is None or not trail.stages:
            return
        request_id = _request_id(completed)
        if share_of(request_id, purpose="trace", seed=0) >= self._fraction:
            return
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

        span = self._tracer.start_span(
            "record",
            kind=SpanKind.CONSUMER,
            start_time=trail.began_ns,
            attributes={
                "messaging.system": "kafka",
                "messaging.destination.name": self._topic,
                "messaging.destination.partition.id": str(completed.partition),
                "messaging.kafka.offset": completed.offset,
                "gnomon.experiment": self._experiment,
                "gnomon.request_id": request_id,
                "gnomon.outcome": _outcome(completed),
                "gnomon.verdicts": [one.comparison.verdict.kind.value for one in completed.pairs],
            },
        )
        for name, began, ended in trail.stages:
            child = self._tracer.start_span(name, context=set_span_in_context(span), start_time=began)
            child.end(end_time=ended)
        if completed.other is not None and completed.other.kind != "skipped":
            span.set_status(Status(StatusCode.ERROR, completed.other.reason))
        span.end(end_time=max(ended for _, _, ended in trail.stages))


def _request_id(completed: Completed) -> str:
    if completed.pairs:
        return completed.pairs[0].pair.mirrored.request_id
    return completed.other.request_id if completed.other is not None else ""


def _outcome(completed: Completed) -> str:
    if completed.other is not None:
        return f"{completed.other.kind}:{completed.other.reason}"
    return "already_stored" if completed.is_stored else "compared"
