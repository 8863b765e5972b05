"""How people are told of alerts: the section `[notify]` and its sinks (docs/alerts.md).

A sink is a table of its own, `[notify.<kind>.<name>]`; no two sinks share a name, whatever their kinds.
Secrets come from `GNOMON_SINK_<NAME>_<KEY>` or a file that `GNOMON_SINK_<NAME>_<KEY>_FILE` names.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from ingest.settings_types import Name, Positive

HttpUrl = Annotated[str, Meta(pattern=r"^https?://\S+$")]
Address = Annotated[str, Meta(pattern=r"^[^@\s,;<>\"\x00-\x1f\x7f]+@[^@\s,;<>\"\x00-\x1f\x7f]+$")]
LabelName = Annotated[str, Meta(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")]

TEMPLATE_FIELDS: dict[str, str] = {
    "state": "firing or resolved",
    "STATE": "FIRING or RESOLVED",
    "reason": "why this is sent: fired, members, severity, unsilenced, reminder, resolved, test",
    "severity": "warning or critical",
    "category": "drift, accounting, no_data, golden or rollback",
    "experiment": "the experiment",
    "candidate": "the candidate endpoint",
    "title": "the notice in a few words",
    "summary": "the leading alert in one line",
    "members": "each alert of the group, one a line",
    "count": "how many alerts the group has",
    "started_at": "when the change began, UTC",
    "fired_at": "when the first alert was raised, by the clock, UTC",
    "fired_pair_at": "when the pair that raised it was mirrored, UTC; empty if no pair did",
    "resolved_at": "when the last alert was resolved, UTC; empty while one fires",
    "change": "when the change began, with its uncertainty",
    "effect": "the effect with its interval",
    "floor": "the noise floor of that metric and slice",
    "suspected": "what served the models before and after",
    "worst_pairs": "the ten worst pairs with their links, one a line",
    "tests": "the descriptive tests, one a line",
    "power": "the smallest effect that would be seen at today's traffic",
    "acknowledged": "by whom it was acknowledged, with the note; empty if by nobody",
    "link": "the explorer's page, if notify.explorer_url is set",
    "runbook": "where it says what to do: notify.runbook_url and the section of the metric",
    "command": "the command that shows all of it",
    "group": "the group's key, as gnomon alerts takes it",
    "key": "the idempotency key of this notice",
}
"""What a template may name in braces, and what stands there."""


class SinkText(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Templates of a sink: text with fields of `TEMPLATE_FIELDS` in braces; `{{` is a brace.

    None takes the text that all sinks have by default.
    """

    title: str | None = None
    body: str | None = None


class WebhookSink(SinkText, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A receiver of JSON. `secret` signs each body (HMAC-SHA256); from the environment only."""

    url: HttpUrl
    secret: str | None = None


class AlertmanagerSink(SinkText, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Prometheus Alertmanager: `url` is its address without `/api/v2/alerts`.

    A firing group is sent every `resend_s` and said to end four times that later, so that it ends by itself
    when nothing is sent any more. `labels` are added to ours. `username` with `password` is basic
    authentication; `password` comes from the environment only.
    """

    url: HttpUrl
    resend_s: Positive = 60.0
    labels: dict[LabelName, str] = {}
    username: str | None = None
    password: str | None = None


class SlackSink(SinkText, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Slack incoming webhook. Its address is a secret: GNOMON_SINK_<NAME>_SECRET_URL."""

    secret_url: HttpUrl | None = None


class EmailSink(SinkText, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Mail by SMTP. `tls`: `starttls` (port 587), `tls` from the first byte (465), or `none` (25).

    `password` comes from the environment only, and is not sent without TLS but to this machine.
    """

    host: Annotated[str, Meta(min_length=1, pattern=r"^[^\s/]+$")]
    sender: Address
    recipients: Annotated[list[Address], Meta(min_length=1)]
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    tls: Literal["starttls", "tls", "none"] = "starttls"
    username: str | None = None
    password: str | None = None

    @property
    def true_port(self) -> int:
        """The port of the settings, else the usual one of `tls`."""
        return self.port or {"starttls": 587, "tls": 465, "none": 25}[self.tls]


class CommandSink(SinkText, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A program that gets the notice as JSON on its standard input. No shell reads `argv`.

    It has succeeded if it ends with 0 within `timeout_s`; then it and its children are killed. Of the
    environment it sees PATH, HOME, LANG, TZ and what `environment` adds, so no secret of ours.
    """

    argv: Annotated[list[str], Meta(min_length=1)]
    timeout_s: Positive = 10.0
    environment: dict[str, str] = {}


AnySink = WebhookSink | AlertmanagerSink | SlackSink | EmailSink | CommandSink


class NotifySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """When a group of alerts is told, and to whom.

    `renotify_s`: a group that fires and that nobody acknowledged or silenced is told again so often.
    `update_interval_s`: new members of a told group are told together, at most so often.
    `evidence_interval_s`: how old the evidence of a firing alert may become before it is gathered anew.
    `explorer_url`: where people reach `gnomon dashboard`; links lead there. None leaves links out.
    `runbook_url`: where your people read docs/runbooks.md; `#` and the metric are added in each notice.
    """

    renotify_s: Positive = 14_400.0
    update_interval_s: Positive = 300.0
    evidence_interval_s: Positive = 900.0
    explorer_url: HttpUrl | None = None
    runbook_url: Annotated[str, Meta(pattern=r"^[^\s#]+$")] = "docs/runbooks.md"
    webhook: dict[Name, WebhookSink] = field(default_factory=dict)
    alertmanager: dict[Name, AlertmanagerSink] = field(default_factory=dict)
    slack: dict[Name, SlackSink] = field(default_factory=dict)
    email: dict[Name, EmailSink] = field(default_factory=dict)
    command: dict[Name, CommandSink] = field(default_factory=dict)

    def sinks(self) -> Iterator[tuple[str, str, AnySink]]:
        """(kind, name, settings) of every sink."""
        tables: tuple[tuple[str, dict[str, AnySink]], ...] = (
            ("webhook", dict(self.webhook)),
            ("alertmanager", dict(self.alertmanager)),
            ("slack", dict(self.slack)),
            ("email", dict(self.email)),
            ("command", dict(self.command)),
        )
        for kind, table in tables:
            for name, sink in table.items():
                yield kind, name, sink


SINK_KINDS: dict[str, type[SinkText]] = {
    "webhook": WebhookSink,
    "alertmanager": AlertmanagerSink,
    "slack": SlackSink,
    "email": EmailSink,
    "command": CommandSink,
}


def template_problem(template: str) -> str | None:
    """What is wrong with a template, None if nothing is."""
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        return f"is a broken template: {error}; write {{{{ for a brace"
    for _, name, spec, conversion in parts:
        if name is None:
            continue
        if spec or conversion:
            return f"formats {{{name}}}; a field stands alone in its braces"
        if name not in TEMPLATE_FIELDS:
            return f"names {{{name}}}, which is no field; fields: {', '.join(TEMPLATE_FIELDS)}"
    return None


def sink_problem(name: str, sink: AnySink) -> tuple[str, str] | None:
    """(key, what is wrong with it) of a sink whose values do not go together; None if they do."""
    for key in ("title", "body"):
        template = getattr(sink, key)
        if template is not None and (problem := template_problem(template)):
            return key, problem
    if isinstance(sink, SlackSink) and sink.secret_url is None:
        return "secret_url", f"is missing; set GNOMON_SINK_{_upper(name)}_SECRET_URL"
    if isinstance(sink, EmailSink | AlertmanagerSink) and (sink.username is None) != (sink.password is None):
        missing = "username" if sink.username is None else "password"
        return missing, "is missing; a user name and its password go together"
    if isinstance(sink, EmailSink) and sink.password is not None:
        if sink.tls == "none" and not is_loopback(sink.host):
            return "tls", 'is "none", and the password would cross the network in the clear'
    elif isinstance(sink, AlertmanagerSink) and (taken := sorted(set(sink.labels) & set(OWN_LABELS))):
        return "labels", f"sets {taken[0]}, which is a label of ours"
    return None


OWN_LABELS = ("alertname", "experiment", "candidate", "category", "severity", "group")
"""Labels of an alert in Alertmanager."""


def is_loopback(host: str) -> bool:
    """Whether a host name means this machine."""
    return host in ("localhost", "127.0.0.1", "::1", "[::1]")


def _upper(name: str) -> str:
    return name.replace("-", "_").replace(".", "_").upper()
