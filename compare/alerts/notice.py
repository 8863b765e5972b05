"""What a person is told: one notice of a group of alerts, frozen when it is decided.

A group is what one cause raised (`life_group`). Its notices are numbered from 1. Each is stored before it is
sent, and sent as stored, so that every sink gets the same words, however late and by whichever process.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from compare.alerts.alert import Category, Severity
from compare.alerts.evidence import Evidence

Reason = Literal["fired", "members", "severity", "unsilenced", "reminder", "resolved", "test"]
"""Why a notice is sent: the group is new; it has more members; it became critical; a silence of it ended and
it fires on; it fires on and nobody acknowledged it; its last alert was resolved; somebody tries the sinks."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One alert of a group as it stood when the notice was made. Times are UTC.

    `fired_at` and `resolved_at` are by the clock, `fired_pair_at` is when the pair that raised it was
    mirrored (None where no pair did, and in notices from before it was kept).
    """

    alert_id: str
    version: int
    state: Literal["firing", "resolved"]
    severity: Severity
    kind: str
    metric: str
    dimension: str
    slice: str
    started_at: datetime
    fired_at: datetime
    resolved_at: datetime | None
    fired_pair_at: datetime | None = None
    statistic: float
    threshold: float
    summary: str
    is_silenced: bool = False
    is_acknowledged: bool = False


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One notice. `members` are the alerts of the group, the leading one first; `evidence` is its own.

    `fired_at` and `fired_pair_at` are the earliest of its members', `resolved_at` is the last.

    `told_severities` are those of the group's earlier notices. `acknowledged` says by whom and with which
    note, empty if by nobody. `link` is the explorer's page of the experiment, empty without its address.
    `runbook` is where it says what to do (empty in notices from before it was kept).
    """

    group_key: str
    number: int
    reason: Reason
    state: Literal["firing", "resolved"]
    severity: Severity
    category: Category
    experiment: str
    candidate: str
    started_at: datetime
    fired_at: datetime
    resolved_at: datetime | None
    fired_pair_at: datetime | None = None
    created_at: datetime
    members: tuple[Member, ...]
    evidence: Evidence | None = None
    told_severities: tuple[Severity, ...] = ()
    acknowledged: str = ""
    link: str = ""
    runbook: str = ""

    @property
    def key(self) -> str:
        """The idempotency key: a receiver that saw it may ignore it."""
        return f"{self.group_key}:{self.number}"


class Delivery(msgspec.Struct, frozen=True):
    """How sending went. `error` is one line, empty where the receiver took it.

    `is_down` says that the receiver cannot take anything now; else it refused this one notice.
    """

    attempts: int
    error: str = ""
    is_down: bool = False
