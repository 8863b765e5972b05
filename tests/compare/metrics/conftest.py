"""Fixtures of the metrics' tests."""

from __future__ import annotations

import pytest

from compare.metrics.embedding import TextEncoder


@pytest.fixture(scope="session")
def encoder() -> TextEncoder:
    """The packaged encoder; it loads at the first text."""
    return TextEncoder()
