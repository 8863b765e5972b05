"""How many pairs an hour are compared: told by when they were compared, not by when they were mirrored.

A file of old traffic is mirrored within a second and compared in minutes; and a service that ran for eight
minutes has no traffic of a day.
"""

from __future__ import annotations

from datetime import datetime

LEAST_PAIRS = 10
"""Under it, chance alone moves a rate by more than a third."""
LEAST_SPAN_S = 60.0
"""Pairs that were taken up within less tell how many may be under way, not how many an hour come."""


def pace(pairs: int, first_at: datetime | None, last_at: datetime | None) -> float | None:
    """Return pairs an hour from when the first and the last were taken up (`ingested_at`).

    None where there is too little to tell.
    """
    if first_at is None or last_at is None or pairs < LEAST_PAIRS:
        return None
    span_s = (last_at - first_at).total_seconds()
    return None if span_s < LEAST_SPAN_S else pairs * 3600 / span_s
