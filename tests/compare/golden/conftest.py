"""Endpoints and settings for golden runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ingest.settings import CompareSettings, EndpointSettings, ExperimentSettings, Settings, StoreSettings
from ingest.settings_golden import GoldenSettings
from tests.fixtures.stub_endpoint import StubEndpoint


@pytest.fixture
def stub() -> Iterator[StubEndpoint]:
    with StubEndpoint() as endpoint:
        yield endpoint


@pytest.fixture
def faulty_stub() -> Iterator[StubEndpoint]:
    with StubEndpoint("the same words again and again. " * 40) as endpoint:
        yield endpoint


@pytest.fixture
def settings(store_settings: StoreSettings, stub: StubEndpoint, faulty_stub: StubEndpoint) -> Settings:
    """The reference answers well, the candidate in loops."""
    return Settings(
        experiment=ExperimentSettings(
            name="e", reference="ref", candidates=["cand"], models={"*": {"ref": "m1", "cand": "m2"}}
        ),
        endpoints={
            "ref": EndpointSettings(url=stub.url, max_attempts=1),
            "cand": EndpointSettings(url=faulty_stub.url, max_attempts=1),
        },
        store=store_settings,
        compare=CompareSettings(embedding_model=""),
        golden=GoldenSettings(set="s"),
    )
