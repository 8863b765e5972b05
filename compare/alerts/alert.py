"""One alert as it is stored, sent and shown."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

State = Literal["firing", "resolved"]
Severity = Literal["warning", "critical"]
Category = Literal["drift", "accounting", "no_data", "golden", "rollback"]
"""What an alert is about: the answers, the service's own books, silence, a golden set, or a rollback (which
is called for beside the alerts, and told by the same sinks)."""


class PairPosition(msgspec.Struct, frozen=True, order=True):
    """The source position of a pair, with its request id."""

    topic_id: str
    partition: int
    offset: int
    request_id: str


class FamilyCount(msgspec.Struct, frozen=True):
    """How many of an alert's pairs show a fault family on the candidate only."""

    family: str
    pairs: int


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One alert at one moment of its life; `version` counts its changes from 1.

    Times are UTC; `started_at` estimates when the change began (the first pair of the leading bet's
    excursion), `fired_at` and `resolved_at` are the mirrored times of the pairs that fired and resolved it.
    `kind` is the detector's; `baseline_version` is of what it was judged against, 0 if that was declared.
    `pairs_folded` is since the series began; `pairs_since_start`, `candidate_faults` and `reference_faults`
    since `started_at`. `observed_rate` is the mean of x since then (candidate faults a pair for rates and the
    excess, mean score or mean rank else) with its 95 % interval, picked out by the alarm and therefore too
    far out. `tolerated` is p0, d or m (`DetectorSpec`). `test_p_value` describes and never
    raised anything. What else is known of an alert is gathered apart (`compare.alerts.gather`).
    """

    alert_id: str
    version: int
    state: State
    severity: Severity
    group_key: str
    category: Category = "drift"
    kind: str = ""
    baseline_version: int = 0
    experiment: str
    candidate: str
    metric: str
    dimension: str
    slice: str
    started_at: datetime
    fired_at: datetime
    resolved_at: datetime | None = None
    pairs_folded: int
    pairs_since_start: int
    candidate_faults: int
    reference_faults: int
    statistic: float
    threshold: float
    tolerated: float
    observed_rate: float
    observed_low: float
    observed_high: float
    test_name: str
    test_p_value: float
    summary: str = ""
