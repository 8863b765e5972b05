"""The alert that nothing comparable comes: its numbers and words."""

from __future__ import annotations

import msgspec

from compare.alerts import words
from compare.alerts.alert import Alert, Severity
from compare.alerts.describe import utc

_MOST_REASONS = 3


class Missing(msgspec.Struct, frozen=True):
    """What became of the records since the last pair: why none was compared.

    `reasons` are (outcome kind, reason, records), most first; `unscored` are pairs that could not be
    judged, `others` pairs with another candidate.
    """

    reasons: tuple[tuple[str, str, int], ...] = ()
    unscored: int = 0
    others: int = 0

    @property
    def has_failed(self) -> bool:
        """Whether records came and could not be compared, other than on purpose."""
        return self.unscored > 0 or self.others > 0 or any(kind != "skipped" for kind, _, _ in self.reasons)


def no_data_alert(
    *,
    alert_id: str,
    group_key: str,
    experiment: str,
    candidate: str,
    started_ms: int,
    fired_ms: int,
    silent_ms: int,
    after_ms: int,
    has_pairs: bool,
    missing: Missing,
) -> Alert:
    """The alert of a silence that began at `started_ms` (the newest pair, or the first look).

    `statistic` and `threshold` are seconds. Critical where records came and could not be compared; mere
    silence of the topic may be the time of day.
    """
    severity: Severity = "critical" if missing.has_failed else "warning"
    last = "the last pair came" if has_pairs else "none has come, watched since"
    began = words.at(utc(started_ms))
    summary = (
        f"{experiment}: candidate {candidate}: no comparable pair for {_span(silent_ms)} ({last} {began}); "
        f"{cause(missing)}"
    )
    return Alert(
        alert_id=alert_id,
        version=1,
        state="firing",
        severity=severity,
        group_key=group_key,
        experiment=experiment,
        candidate=candidate,
        category="no_data",
        kind="no_data",
        metric="no_data",
        dimension="experiment",
        slice="",
        started_at=utc(started_ms),
        fired_at=utc(fired_ms),
        pairs_folded=0,
        pairs_since_start=0,
        candidate_faults=0,
        reference_faults=0,
        statistic=silent_ms / 1000,
        threshold=after_ms / 1000,
        tolerated=0.0,
        observed_rate=0.0,
        observed_low=0.0,
        observed_high=1.0,
        test_name="",
        test_p_value=1.0,
        summary=summary,
    )


def no_data_resolved(alert: Alert, resolved_ms: int) -> Alert:
    """The next version of the alert: pairs come again."""
    at = utc(resolved_ms)
    return msgspec.structs.replace(
        alert,
        version=alert.version + 1,
        state="resolved",
        resolved_at=at,
        statistic=0.0,
        summary=f"resolved {words.at(at)}: {alert.summary}",
    )


def cause(missing: Missing) -> str:
    """Why there is no pair, as far as the store can tell."""
    counts = [f"{kind} ({reason}) {count}" for kind, reason, count in missing.reasons[:_MOST_REASONS]]
    if missing.unscored:
        counts.append(f"unscored {missing.unscored}")
    if missing.others:
        counts.append(f"compared with another candidate {missing.others}")
    if not counts:
        return "no record was delivered since: is the service running, and does its topic get traffic?"
    return f"records since then: {', '.join(counts)}"


def _span(milliseconds: int) -> str:
    minutes, seconds = divmod(milliseconds // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{seconds} s"
