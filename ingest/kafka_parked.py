"""A partition that kafka-python 3 would never read again.

What was fetched of a partition that is paused half taken is parked, and nothing more is fetched for it.
`Fetcher.fetched_records` takes it back only while no other records are in line, and tests that with
`is None`; but records that were taken to their end stay in line. Once another partition was read
meanwhile, the parked one is stuck for good, through every resume, seek and rebalance (seen in 3.0.12).
"""

from __future__ import annotations

from typing import Any


def let_parked_go_on(consumer: Any) -> None:
    """Take records that were taken to their end out of the line. Call before each poll, on its thread."""
    fetcher = consumer._fetcher
    if fetcher._next_partition_records is not None and not fetcher._next_partition_records:
        fetcher._next_partition_records = None
