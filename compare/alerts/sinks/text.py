"""A notice in words: the fields of templates, and the title and body that sinks have by default.

Names of routes, models and requests come from traffic, and families and reasons may: each is made visible
(`compare.visible`) before it stands in a text, and `escape` is applied to each field, never to a template.
"""

from __future__ import annotations

from collections.abc import Callable

from compare.alerts import words
from compare.alerts.links import explorer_of, pair_link
from compare.alerts.notice import Member, Notice
from compare.visible import visible_block, visible_line
from ingest.settings_notify import SinkText

MOST_MEMBERS = 20
LONGEST_BODY = 12_000
_AGAIN = {
    "members": ", more of it",
    "severity": ", worse now",
    "unsilenced": ", still, after a silence",
    "reminder": ", still",
}
_SHOWN_BY = {"rollback": "rollback explain"}
"""The command that shows all of it, where that is not an alert."""


def fields(notice: Notice) -> dict[str, str]:
    """Every field that a template may name (`TEMPLATE_FIELDS`)."""
    evidence, lead = notice.evidence, notice.members[0]
    told = {
        "effect": words.effect(lead.metric, evidence) if evidence else "",
        "change": words.change(evidence) if evidence else "",
        "floor": words.floor(lead.metric, evidence) if evidence else "",
        "suspected": words.suspected(evidence) if evidence else "",
        "tests": words.tests(evidence) if evidence else "",
        "power": words.power(lead.kind, evidence) if evidence else "",
    }
    return {
        "state": notice.state,
        "STATE": notice.state.upper(),
        "reason": notice.reason,
        "severity": notice.severity,
        "category": notice.category,
        "experiment": words.name(notice.experiment),
        "candidate": words.name(notice.candidate),
        "title": title(notice),
        "summary": visible_line(lead.summary, 2_000),
        "members": "\n".join(_member(member) for member in notice.members[:MOST_MEMBERS])
        + (f"\nand {len(notice.members) - MOST_MEMBERS} more" if len(notice.members) > MOST_MEMBERS else ""),
        "count": str(len(notice.members)),
        "started_at": words.at(notice.started_at),
        "fired_at": words.at(notice.fired_at),
        "fired_pair_at": "" if notice.fired_pair_at is None else words.at(notice.fired_pair_at),
        "resolved_at": "" if notice.resolved_at is None else words.at(notice.resolved_at),
        **told,
        "worst_pairs": "\n".join(worst_pairs(notice)),
        "acknowledged": visible_line(notice.acknowledged, 500),
        "link": notice.link,
        "runbook": notice.runbook,
        "command": f"gnomon {_SHOWN_BY.get(notice.category, 'alerts show')} {lead.alert_id}",
        "group": notice.group_key,
        "key": notice.key,
    }


def title(notice: Notice) -> str:
    """The notice in a few words: state, severity, whose, what."""
    state = {"resolved": "RESOLVED"}.get(notice.state, f"FIRING {notice.severity}")
    again = _AGAIN.get(notice.reason, "")
    test = "TEST " if notice.reason == "test" else ""
    count = len(notice.members)
    lead = notice.members[0]
    what = lead.metric
    if lead.dimension != "experiment":
        what += f" in {lead.dimension} {words.name(lead.slice)}"
    more = f" and {count - 1} more" if count > 1 else ""
    whose = f"{words.name(notice.experiment)}: {words.name(notice.candidate)}"
    return f"{test}{state}{again}: {whose}: {what}{more}"


def default_body(told: dict[str, str]) -> str:
    """Everything that is known, a paragraph each; what is not known is left out."""
    parts = [told["summary"]]
    for label, name in (
        ("Acknowledged", "acknowledged"),
        ("Since when", "change"),
        ("How much", "effect"),
        ("Noise floor", "floor"),
        ("What changed", "suspected"),
        (f"Alerts ({told['count']})", "members"),
        ("Worst pairs", "worst_pairs"),
        ("Tests (they describe, they raised nothing)", "tests"),
        ("Would be seen", "power"),
        ("What to do", "runbook"),
        ("Explorer", "link"),
        ("All of it", "command"),
    ):
        text = told[name]
        if text:
            parts.append(f"{label}:\n{text}" if "\n" in text else f"{label}: {text}")
    return "\n\n".join(parts)


def render(notice: Notice, settings: SinkText, escape: Callable[[str], str] | None = None) -> tuple[str, str]:
    """Title (one line) and body of a sink, by its templates where it has some."""
    told = fields(notice)
    plain = told if escape is None else {name: escape(text) for name, text in told.items()}
    heading = plain["title"] if settings.title is None else settings.title.format_map(plain)
    body = default_body(plain) if settings.body is None else settings.body.format_map(plain)
    return visible_line(" ".join(heading.split()), 200), visible_block(body, LONGEST_BODY)


def worst_pairs(notice: Notice) -> list[str]:
    """Each of the worst pairs: request, position, and a link if the explorer's address is known."""
    if notice.evidence is None:
        return []
    # The notice keeps the address of its alerts' page; a pair has a page of its own.
    base = explorer_of(notice.link)
    lines = []
    for pair in notice.evidence.worst_pairs:
        link = pair_link(base, notice, pair)
        request = words.name(pair.request_id) or "a request without id"
        lines.append(f"{request} at {pair.partition}/{pair.offset}" + (f" {link}" if link else ""))
    return lines


def _member(member: Member) -> str:
    where = "" if member.dimension == "experiment" else f" in {member.dimension} {words.name(member.slice)}"
    facts: list[str] = [member.state, member.severity]
    facts += ["silenced"] if member.is_silenced else []
    facts += ["acknowledged"] if member.is_acknowledged else []
    fired = words.fired(member.fired_at, member.fired_pair_at)
    return f"{member.metric}{where} ({', '.join(facts)}), fired {fired}: {member.alert_id}"
