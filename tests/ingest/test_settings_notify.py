"""Sinks in the settings: where they stand, where their secrets come from, and what is refused."""

from __future__ import annotations

import string
from pathlib import Path

import pytest

from ingest.settings_notify import TEMPLATE_FIELDS, AlertmanagerSink, EmailSink, SlackSink, WebhookSink
from tests.ingest.test_load_settings import MINIMAL, load, refusal

SINKS = (
    MINIMAL
    + """
[notify]
renotify_s = 60.0
explorer_url = "http://explorer:8501"
[notify.webhook.pager]
url = "https://alerts.example/hook?token=t"
title = "{STATE}: {summary}"
[notify.alertmanager.main-1]
url = "http://127.0.0.1:9093"
username = "u"
labels = { team = "t" }
[notify.slack.oncall]
[notify.email.team]
host = "smtp.example"
sender = "gnomon@example.com"
recipients = ["a@example.com", "b@example.com"]
[notify.command.script]
argv = ["/bin/page", "--now"]
"""
)
SECRETS = {
    "GNOMON_SINK_PAGER_SECRET": "hush-1",
    "GNOMON_SINK_MAIN_1_PASSWORD": "hush-2",
    "GNOMON_SINK_ONCALL_SECRET_URL": "https://hooks.slack.example/T/B/x",
}


def test_sinks_of_every_kind_with_their_secrets(tmp_path: Path) -> None:
    notify = load(tmp_path, SINKS, **SECRETS).notify
    assert [f"{kind}:{name}" for kind, name, _ in notify.sinks()] == [
        "webhook:pager",
        "alertmanager:main-1",
        "slack:oncall",
        "email:team",
        "command:script",
    ]
    assert notify.webhook["pager"] == WebhookSink(
        url="https://alerts.example/hook?token=t", title="{STATE}: {summary}", secret="hush-1"
    )
    assert notify.alertmanager["main-1"] == AlertmanagerSink(
        url="http://127.0.0.1:9093", username="u", password="hush-2", labels={"team": "t"}
    )
    assert notify.slack["oncall"] == SlackSink(secret_url="https://hooks.slack.example/T/B/x")
    assert notify.email["team"].true_port == 587
    assert (notify.renotify_s, notify.update_interval_s) == (60.0, 300.0)


def test_a_secret_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("https://hooks.slack.example/T/B/y\n")
    secrets = {**SECRETS, "GNOMON_SINK_ONCALL_SECRET_URL_FILE": str(file)}
    del secrets["GNOMON_SINK_ONCALL_SECRET_URL"]
    slack = load(tmp_path, SINKS, **secrets).notify.slack["oncall"]
    assert slack.secret_url == "https://hooks.slack.example/T/B/y"


@pytest.mark.parametrize(
    ("section", "variable"),
    [
        ('[notify.webhook.a]\nurl = "http://x"\nsecret = "hush"', "GNOMON_SINK_A_SECRET"),
        ('[notify.slack.a-b]\nsecret_url = "https://hush"', "GNOMON_SINK_A_B_SECRET_URL"),
        ('[notify.alertmanager.a]\nurl = "http://x"\npassword = "hush"', "GNOMON_SINK_A_PASSWORD"),
    ],
)
def test_secrets_in_the_file_are_refused(tmp_path: Path, section: str, variable: str) -> None:
    message = refusal(tmp_path, MINIMAL + section)
    assert f"set {variable} or {variable}_FILE" in message
    assert "hush" not in message


EMAIL = '[notify.email.a]\nhost = "{host}"\nsender = "{sender}"\nrecipients = ["{to}"]\n'


def email(host: str = "h", sender: str = "g@e.com", to: str = "o@e.com") -> str:
    return EMAIL.format(host=host, sender=sender, to=to)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ('[notify.webhook.a]\nurl = "ftp://x"', "notify.webhook.a.url is 'ftp://x'"),
        ('[notify.webhook.a]\nurl = "http://u:p@x"', "notify.webhook.a.url holds a user or password"),
        ("[notify.webhook.a]\ntitle = 'x'", "notify.webhook.a.url is missing"),
        (
            '[notify.alertmanager.a]\nurl = "http://x"\nresend_s = 29',
            "notify.alertmanager.a.resend_s is 29, under half of alerts.interval_s, 60: alerts would end",
        ),
        ("[notify.slack.a]", "notify.slack.a.secret_url is missing; set GNOMON_SINK_A_SECRET_URL"),
        ('[notify.pigeon.a]\nurl = "x"', "notify.pigeon is not a known key"),
        (
            '[notify.webhook.a]\nurl = "http://x"\ntitle = "{sumary}"',
            "notify.webhook.a.title names {sumary}, which is no field; fields: state, ",
        ),
        (
            '[notify.webhook.a]\nurl = "http://x"\nbody = "{summary.__class__}"',
            "notify.webhook.a.body names {summary.__class__}, which is no field",
        ),
        (
            '[notify.webhook.a]\nurl = "http://x"\nbody = "{summary:>99999999}"',
            "notify.webhook.a.body formats {summary}; a field stands alone",
        ),
        ('[notify.webhook.a]\nurl = "http://x"\nbody = "{"', "notify.webhook.a.body is a broken template"),
        (
            '[notify.alertmanager.a]\nurl = "http://x"\nlabels = { severity = "x" }',
            "notify.alertmanager.a.labels sets severity, which is a label of ours",
        ),
        (
            '[notify.alertmanager.a]\nurl = "http://x"\nusername = "u"',
            "notify.alertmanager.a.password is missing",
        ),
        (email(to="o@e.com\\r\\nBcc: x@e.com"), "notify.email.a.recipients is"),
        (email(sender="nobody"), "notify.email.a.sender is 'nobody'"),
        (email() + 'tls = "ssl"', "notify.email.a.tls is 'ssl'; it must be one of none, starttls, tls"),
        ("[notify.command.a]\nargv = []", "notify.command.a.argv is []"),
        (
            '[notify.webhook.a]\nurl = "http://x"\n[notify.command.a]\nargv = ["x"]',
            "would both be set by GNOMON_SINK_A_TITLE; rename one",
        ),
    ],
)
def test_sinks_are_checked(tmp_path: Path, section: str, message: str) -> None:
    assert message in refusal(tmp_path, MINIMAL + section)


def test_a_password_never_crosses_the_network_in_the_clear(tmp_path: Path) -> None:
    plain = MINIMAL + email() + 'tls = "none"\nusername = "u"'
    assert "in the clear" in refusal(tmp_path, plain, GNOMON_SINK_A_PASSWORD="hush")
    here = MINIMAL + email("127.0.0.1") + 'tls = "none"\nusername = "u"'
    sink = load(tmp_path, here, GNOMON_SINK_A_PASSWORD="hush").notify.email["a"]
    assert isinstance(sink, EmailSink)
    assert sink.true_port == 25


def test_every_field_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text()
    for name, meaning in TEMPLATE_FIELDS.items():
        assert f"| `{{{name}}}` | {meaning} |" in page
    assert all(name.isidentifier() for name in TEMPLATE_FIELDS)
    assert list(string.Formatter().parse("{state}"))[0][1] == "state"
