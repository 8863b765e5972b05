"""What the store takes on disk."""

from __future__ import annotations

import pandas as pd

from dashboards.asked import Asked, frame


def sizes(asked: Asked) -> pd.DataFrame:
    """table, rows, bytes_on_disk, uncompressed_bytes, parts, largest first; of the host that answers.

    Empty where the store's account may not see the tables. Raises StoreQueryError where it may not read
    `system.parts` at all: both are in `sql/grants/dashboard.sql`.
    """
    return frame(
        asked,
        "SELECT table, sum(rows) AS row_count, sum(bytes_on_disk) AS disk_bytes,"
        " sum(data_uncompressed_bytes) AS uncompressed_bytes, count() AS parts FROM system.parts"
        " WHERE active AND database = currentDatabase() GROUP BY table ORDER BY disk_bytes DESC, table",
    ).rename(columns={"row_count": "rows", "disk_bytes": "bytes_on_disk"})
