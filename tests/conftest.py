"""Fixtures for every test, each defined in its own file under `tests/fixtures/`."""

from tests.fixtures.broker import broker, topic
from tests.fixtures.models import candidate_server, model_paths, reference_server

__all__ = ["broker", "candidate_server", "model_paths", "reference_server", "topic"]
