"""What the alert runner tells of itself, for metrics and logs. Read from any thread."""

from __future__ import annotations

import msgspec

from compare.alerts.alert import Severity


class RunnerStatus(msgspec.Struct, frozen=True):
    """At the end of the last run, or while one goes on.

    `last_run_s` is Unix seconds of the end of the last run that succeeded, None before it; `backlog` is
    stored pairs that are settled and not folded, over all candidates; `firing` counts open alerts by
    severity, and is empty while another process leads: it alone knows.
    """

    is_leader: bool = False
    last_run_s: float | None = None
    backlog: int = 0
    firing: dict[Severity, int] = {}
    failed_runs: int = 0
