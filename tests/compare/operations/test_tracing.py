from __future__ import annotations

import sys

import pytest

from compare.operations.tracing import tracing
from ingest.errors import FatalError
from ingest.settings import OperationsSettings


def test_without_a_collector_there_are_no_traces_and_nothing_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with tracing(OperationsSettings(), "e", "t") as observers:
        assert observers == []


@pytest.mark.parametrize("missing", ["opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"])
def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    settings = OperationsSettings(otlp_url="http://127.0.0.1:1/v1/traces")
    line = r"^operations.otlp_url needs OpenTelemetry .*gnomon\[otel\]'$"
    with pytest.raises(FatalError, match=line), tracing(settings, "e", "t"):
        pass
