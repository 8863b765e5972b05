"""Which alerts are told together: those of one category whose changes began at about the same time.

One bad deploy moves many metrics in many slices. Each of their detectors fires on its own, some within a
minute, a small slice hours later; but all of them estimate the same start. So it is the start that decides,
not the time of the alarm.
"""

from __future__ import annotations

from collections.abc import Iterable

from compare.alerts.alert import Alert, Category
from compare.row_values import milliseconds

WINDOW_MS = 3_600_000
"""How far apart two estimated starts of one cause may lie."""


def choose_group(alert_id: str, category: Category, started_ms: int, open_alerts: Iterable[Alert]) -> str:
    """Return the group of an alert that fires: that of the open alert with the nearest start, or its own id.

    `open_alerts` are those of the same experiment and candidate that fire now. Pure: the same on each
    replay of the same pairs.
    """
    near = [
        (abs(milliseconds(alert.started_at) - started_ms), alert.group_key)
        for alert in open_alerts
        if alert.category == category
    ]
    distance, key = min(near, default=(WINDOW_MS + 1, ""))
    return key if distance <= WINDOW_MS else alert_id
