"""Fixtures for every test, each defined in its own file under `tests/fixtures/`."""

import hypothesis

from tests.fixtures.broker import broker, topic
from tests.fixtures.models import candidate_server, model_paths, reference_server
from tests.fixtures.stores import migrated_at, migrated_folder

__all__ = [
    "broker",
    "candidate_server",
    "migrated_at",
    "migrated_folder",
    "model_paths",
    "reference_server",
    "topic",
]

# The same examples on every run and no time limit: a busy machine must not fail a test.
hypothesis.settings.register_profile(
    "gnomon",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("gnomon")
