"""An alert, or a group of them, for a person at a terminal at night."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from itertools import pairwise

import msgspec

from compare.alerts import words
from compare.alerts.actions import Actions, Target, read_actions
from compare.alerts.alert import Alert
from compare.alerts.alert_log import COLUMNS, Stored, read_stored
from compare.alerts.evidence import Evidence
from compare.alerts.evidence_store import read_evidence
from compare.alerts.links import pair_link, runbook_link
from compare.store.client import Store
from compare.visible import visible_line
from ingest.errors import SettingsError
from ingest.settings_notify import NotifySettings

_MOST_EVENTS = 40


def show_target(store: Store, target: Target, links: NotifySettings) -> str:
    """Return everything known of the alert, or of each alert of the group, and what happened so far.

    Of the settings only `explorer_url` and `runbook_url` are used.

    Raises SettingsError if there is none, and what the store raises.
    """
    alerts = _read(store, target)
    if not alerts:
        raise SettingsError(f"{target} of experiment {target.experiment} is no longer stored")
    evidence = read_evidence(store, target.experiment, [alert.alert_id for alert in alerts])
    actions = read_actions(store, target.experiment)
    now = datetime.now(UTC)
    stored = read_stored(store, target.experiment, [alert.alert_id for alert in alerts])
    parts = [
        _one(alert, stored[alert.alert_id], evidence.get(alert.alert_id), actions, now, links)
        for alert in alerts
    ]
    return "\n\n".join([*parts, "What happened:\n" + "\n".join(_events(store, target))])


def _one(
    alert: Alert,
    stored: Stored,
    evidence: Evidence | None,
    actions: Actions,
    now: datetime,
    links: NotifySettings,
) -> str:
    is_critical = "critical" in (alert.severity, "" if evidence is None else evidence.severity)
    head = f"{alert.state.upper()} {'critical' if is_critical else 'warning'}: {alert.metric}"
    summary = alert.summary if evidence is None else evidence.summary or alert.summary
    lines = [f"{head}  (alert {alert.alert_id}, group {alert.group_key})", visible_line(summary, 2_000)]
    facts: list[tuple[str, str]] = [("fired", words.fired(stored.raised_at, alert.fired_at))]
    if stored.resolved_at is not None:
        facts.append(("resolved", words.at(stored.resolved_at)))
    acknowledged = actions.acknowledgement_of(alert)
    if acknowledged is not None:
        note = f": {visible_line(acknowledged.note, 500)}" if acknowledged.note else ""
        facts.append(
            ("acknowledged", f"by {acknowledged.acted_by} at {words.at(acknowledged.acted_at)}{note}")
        )
    silence = actions.silence_of(alert, now)
    if silence is not None:
        facts.append(("silenced", f"until {words.at(silence.true_end)} by {silence.acted_by}"))
    if alert.category not in ("no_data", "golden"):
        sure = f"{alert.statistic:,.0f}, alarm at {alert.threshold:,.0f}, {alert.pairs_folded} pairs folded"
        facts.append(("evidence", sure))
    if evidence is not None:
        facts += _facts(alert, evidence, links.explorer_url)
    else:
        facts.append(("more", "not gathered yet: within the next run of the alerts"))
    facts.append(("what to do", runbook_link(links.runbook_url, alert.category, alert.metric)))
    return "\n".join(lines + [_fact(label, text) for label, text in facts if text])


def _facts(alert: Alert, evidence: Evidence, explorer_url: str | None) -> list[tuple[str, str]]:
    worst = [
        f"{words.name(pair.request_id) or 'a request without id'} at partition {pair.partition}, offset"
        f" {pair.offset}" + (f"\n  {link}" if (link := pair_link(explorer_url, alert, pair)) else "")
        for pair in evidence.worst_pairs
    ]
    if evidence.worst_pairs:
        worst.append(_command(alert, evidence))
    return [
        ("since when", words.change(evidence)),
        ("how much", words.effect(alert.metric, evidence)),
        ("noise floor", words.floor(alert.metric, evidence)),
        ("what changed", words.suspected(evidence)),
        ("faults", words.families(evidence)),
        ("tests", words.tests(evidence)),
        ("would be seen", words.power(alert.kind, evidence)),
        ("worst pairs", "\n".join(worst)),
        ("gathered", words.at(evidence.gathered_at)),
    ]


def _command(alert: Alert, evidence: Evidence) -> str:
    """A statement that shows the verdicts of the worst pairs, to copy."""
    where = ", ".join(f"({pair.partition}, {pair.offset})" for pair in evidence.worst_pairs)
    experiment, candidate = (
        name.replace("\\", "\\\\").replace("'", "\\'") for name in (alert.experiment, alert.candidate)
    )
    query = (
        "SELECT request_id, verdict, severity, probable_cause, reasons FROM pairs_v1"
        f" WHERE experiment = '{experiment}' AND candidate = '{candidate}'"
        f" AND (partition, offset) IN ({where})"
    )
    return f"look at them: gnomon sql {shlex.quote(query)}"


def _fact(label: str, text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([f"  {label + ':':<15}{first}", *(f"  {'':<15}{line}" for line in rest)])


def _read(store: Store, target: Target) -> list[Alert]:
    rows = store.query(
        f"SELECT {', '.join(COLUMNS)} FROM alerts FINAL WHERE experiment = {{experiment:String}}"
        " AND group_key = {group:String} AND {id:String} IN ('', alert_id)"
        " ORDER BY alert_id, version DESC LIMIT 1 BY alert_id",
        {"experiment": target.experiment, "group": target.group_key, "id": target.alert_id},
    ).rows
    alerts = [msgspec.convert(dict(zip(COLUMNS, row, strict=True)), Alert) for row in rows]
    return sorted(alerts, key=lambda alert: (alert.dimension != "experiment", alert.fired_at, alert.alert_id))


def _events(store: Store, target: Target) -> list[str]:
    """The alert's history, oldest first; the same event of the same time is said once."""
    rows = store.query(
        "SELECT happened_at, event, acted_by, detail FROM alert_history_v1"
        " WHERE experiment = {experiment:String} AND group_key = {group:String}"
        " AND ({id:String} = '' OR alert_id IN ('', {id:String}))"
        " ORDER BY happened_at, event LIMIT {most:UInt32}",
        {
            "experiment": target.experiment,
            "group": target.group_key,
            "id": target.alert_id,
            "most": _MOST_EVENTS,
        },
    ).rows
    lines = [
        f"  {words.at(at)}  {event}{' by ' + by if by else ''}"
        + (f": {visible_line(detail, 160)}" if event not in ("fired", "resolved") and detail else "")
        for at, event, by, detail in rows
    ]
    return lines[:1] + [line for before, line in pairwise(lines) if line != before]
