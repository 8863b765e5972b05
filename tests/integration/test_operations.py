"""Metrics, health, logs and traces of a real run."""

from __future__ import annotations

import gzip
import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgspec
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from compare.counters import Counters
from compare.run import run_service
from ingest.errors import FatalError
from ingest.settings import OperationsSettings
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.conftest import Bench, envelope

SECRET = "a word that no log may hold"


@contextmanager
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """An OTLP collector: its URL, and what it was sent."""
    got: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            request = ExportTraceServiceRequest()
            request.ParseFromString(body)
            got.append(request)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/traces", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample by its name and labels, as Prometheus' own parser reads them."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_run_is_seen_in_metrics_health_logs_and_traces(
    bench: Bench,
    stubs: tuple[StubEndpoint, StubEndpoint],
    caplog: pytest.LogCaptureFixture,
    unused_tcp_port: int,
) -> None:
    stubs[1].text = "another answer"
    bench.produce(
        [envelope(f"r{n}", SECRET) for n in range(3)] + [envelope("r0"), b"{broken " + SECRET.encode()]
    )
    caplog.set_level(logging.DEBUG)
    pages: dict[str, tuple[int, str]] = {}
    base = f"http://127.0.0.1:{unused_tcp_port}"

    def look(counters: Counters) -> bool:
        # Asked by a thread of its own: this is called on the loop that answers.
        if counters.outcomes < 5 or counters.consumed < 5:
            return False
        if not asking.is_alive() and not pages:
            asking.start()
        return len(pages) == 4

    def ask() -> None:
        for path in ("/healthz", "/readyz", "/metrics", "/nothing"):
            pages[path] = get(base + path)

    asking = threading.Thread(target=ask)
    with collector() as (url, traces):
        operations = OperationsSettings(port=unused_tcp_port, otlp_url=url)
        settings = msgspec.structs.replace(bench.settings, operations=operations)
        run_service(settings, stop_when=look)
    asking.join()

    assert pages["/healthz"] == (200, '{"status": "ok"}')
    assert pages["/readyz"] == (200, '{"status": "ready", "reasons": []}')
    assert pages["/nothing"][0] == 404
    seen = samples(pages["/metrics"][1])
    assert seen["gnomon_build_info", (("experiment", "e"), ("version", "0.1.0"))] == 1
    assert seen["gnomon_ready", ()] == 1
    assert seen["gnomon_records_consumed_total", ()] == 5
    assert seen["gnomon_records_delivered_total", ()] == 5
    assert seen["gnomon_records_compared_total", ()] == 3
    assert seen["gnomon_records_dead_lettered_total", ()] == 1
    assert seen["gnomon_records_skipped_total", (("reason", "duplicate"),)] == 1
    assert seen["gnomon_pairs_total", (("candidate", "cand"), ("verdict", "diverged"))] == 3
    assert seen["gnomon_endpoint_seconds_count", (("endpoint", "ref"), ("role", "reference"))] == 3
    assert seen["gnomon_endpoint_seconds_count", (("endpoint", "cand"), ("role", "candidate"))] == 3
    assert seen["gnomon_answer_entropy_nats_count", (("endpoint", "cand"), ("role", "candidate"))] == 3
    assert seen["gnomon_edit_similarity_count", (("candidate", "cand"),)] == 3
    for stage, count in (("replay", 3), ("compare", 3), ("store", 5)):
        assert seen["gnomon_stage_seconds_count", (("stage", stage),)] == count
    assert seen["gnomon_partition_lag_records", (("partition", "0"),)] == 0
    assert seen["gnomon_partition_position", (("partition", "0"),)] == 5
    assert seen["gnomon_partition_held", (("partition", "0"),)] == 0
    assert seen["gnomon_outstanding_records", ()] == 0
    assert seen["gnomon_endpoint_breaker_open", (("endpoint", "cand"),)] == 0
    assert seen["gnomon_endpoint_in_flight_requests", (("endpoint", "ref"),)] == 0
    assert seen["gnomon_endpoint_tokens_today", (("endpoint", "ref"),)] > 0
    assert seen["process_resident_memory_bytes", ()] > 10_000_000

    records = [record for record in caplog.records if record.name == "gnomon.records"]
    told = sorted(
        (vars(record)["offset"], vars(record)["request_id"], record.levelname) for record in records
    )
    assert told == [
        (0, "r0", "DEBUG"),
        (1, "r1", "DEBUG"),
        (2, "r2", "DEBUG"),
        (3, "r0", "DEBUG"),
        (4, "", "WARNING"),
    ]
    ours = [r for r in caplog.records if r.name.startswith(("compare", "ingest", "gnomon"))]
    assert len(ours) > len(records)
    assert not [record.getMessage() for record in ours if SECRET in record.getMessage()]

    spans = [
        span
        for request in traces
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert SECRET.encode() not in b"".join(request.SerializeToString() for request in traces)
    roots = {
        attribute.value.int_value: span
        for span in spans
        if span.name == "record"
        for attribute in span.attributes
        if attribute.key == "messaging.kafka.offset"
    }
    assert sorted(roots) == [0, 1, 2, 3, 4]
    children = {
        offset: [span.name for span in spans if span.parent_span_id == root.span_id]
        for offset, root in roots.items()
    }
    assert children[0] == ["replay", "compare", "store"]
    assert children[3] == children[4] == ["store"]
    for span in spans:
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
    outcomes = [
        next(a.value.string_value for a in roots[offset].attributes if a.key == "gnomon.outcome")
        for offset in range(5)
    ]
    assert outcomes == ["compared", "compared", "compared", "skipped:duplicate", "dead_letter:invalid_json"]


def test_a_port_in_use_ends_the_run_with_one_line(bench: Bench) -> None:
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    settings = msgspec.structs.replace(bench.settings, operations=OperationsSettings(port=server.server_port))
    try:
        with pytest.raises(
            FatalError, match=rf"operations.port: cannot listen on 127.0.0.1:{server.server_port}"
        ):
            run_service(settings)
    finally:
        server.server_close()
