"""Slack's message: what comes from traffic can neither ping nor hide anything."""

from __future__ import annotations

from typing import Any

from compare.alerts.alert import FamilyCount
from compare.alerts.notify import make_notice
from compare.alerts.sinks.slack import LONGEST_HEADER, LONGEST_SECTION, Slack, cut, escape
from ingest.settings_notify import SlackSink
from tests.compare.alerts import made
from tests.compare.alerts.sinks.receivers import receiver

HOSTILE = "<!channel> <https://evil.example|ok> *b* & \u202e\x1b[31m\n# x"


def message(body: str | None = None, **changes: Any) -> dict[str, Any]:
    alert = made.alert(dimension="route", slice=HOSTILE, summary=f"s {HOSTILE}", **changes)
    group = made.group(
        alert,
        evidence={
            alert.alert_id: made.evidence(alert, families=(FamilyCount(HOSTILE, 3),), summary=f"s {HOSTILE}")
        },
    )
    notice = make_notice(group, "fired", made.NOTIFY, made.now())
    with receiver() as server:
        sink = Slack("slack:oncall", SlackSink(secret_url=server.url, body=body))
        assert sink.send(notice, notice.created_at).error == ""
        assert "t0ken" not in sink.preview(notice, notice.created_at)
    document: dict[str, Any] = server.received[0].document
    return document


def test_hostile_text_is_escaped_and_stands_in_plain_blocks() -> None:
    document = message()
    texts = [document["text"], *(block["text"]["text"] for block in document["blocks"])]
    shown = "\n".join(texts[:-1])
    assert "<" not in shown
    assert "&lt;!channel&gt; &lt;https://evil.example|ok&gt; *b* &amp; \\u202e\\x1b[31m\\n# x" in shown
    assert {block["text"]["type"] for block in document["blocks"][:-1]} == {"plain_text"}
    # The only markup is our own link.
    assert document["blocks"][-1]["text"] == {
        "type": "mrkdwn",
        "text": "<http://explorer:8501/alerts?experiment=e&amp;candidate=q4|Open the explorer>",
    }


def test_a_template_is_kept_and_its_fields_are_escaped() -> None:
    sections = [block["text"]["text"] for block in message(body="<@oncall> {summary}")["blocks"][1:-1]]
    assert sections[0].startswith("<@oncall> s &lt;!channel&gt;")


def test_everything_fits_what_slack_takes() -> None:
    document = message(body="{summary}\n" * 400)
    assert all(len(block["text"]["text"]) <= LONGEST_SECTION for block in document["blocks"][1:])
    assert len(document["blocks"][0]["text"]["text"]) <= LONGEST_HEADER
    assert len(document["blocks"]) <= 50


def test_a_cut_never_ends_within_an_escape() -> None:
    assert escape("a<b") == "a&lt;b"
    assert [cut(escape("ab<cd"), longest) for longest in range(3, 9)] == [
        "ab…", "ab…", "ab…", "ab…", "ab&lt;…", "ab&lt;cd",
    ]  # fmt: skip


def test_a_refusal_shows_what_slack_said() -> None:
    notice = made.notice()
    with receiver(400) as server:
        delivery = Slack("slack:o", SlackSink(secret_url=server.url)).send(notice, notice.created_at)
    assert delivery.error.endswith("status 400: no_service: <b>\\x1b")
    assert "t0ken" not in delivery.error
