"""The webhook against a real HTTP server on loopback."""

from __future__ import annotations

import hashlib
import hmac

import msgspec
import pytest

from compare.alerts.notice import Notice
from compare.alerts.sinks.post import BACKOFF_S
from compare.alerts.sinks.webhook import Webhook
from ingest.settings_notify import WebhookSink
from tests.compare.alerts import made
from tests.compare.alerts.sinks.receivers import free_port, receiver

SECRET = "s3cret"


def webhook(url: str, waits: list[float] | None = None, **settings: str) -> Webhook:
    return Webhook(
        "webhook:pager", WebhookSink(url=url, **settings), sleep=([] if waits is None else waits).append
    )


def test_signed_json_with_an_idempotency_key() -> None:
    notice = made.notice()
    with receiver() as server:
        delivery = webhook(server.url, secret=SECRET).send(notice, notice.created_at)
    assert (delivery.attempts, delivery.error) == (1, "")
    (got,) = server.received
    assert got.headers["X-Gnomon-Signature"] == (
        "sha256=" + hmac.new(SECRET.encode(), got.body, hashlib.sha256).hexdigest()
    )
    assert got.headers["Idempotency-Key"] == f"{'g' * 32}:1"
    assert got.headers["Content-Type"] == "application/json"
    document = got.document
    assert document["schema"] == "gnomon.notice/1"
    assert document["title"] == "FIRING warning: e: q4: regression_rate"
    assert msgspec.convert(document["notice"], Notice) == notice
    assert (
        "http://explorer:8501/pair?experiment=e&candidate=q4&topic_id=t-1&partition=0&offset=7"
        in (document["body"])
    )


def test_templates_take_the_place_of_title_and_body() -> None:
    notice = made.notice()
    with receiver() as server:
        webhook(server.url, title="{STATE}\n{severity} {{x}}", body="{group} {worst_pairs}").send(
            notice, notice.created_at
        )
    document = server.received[0].document
    assert document["title"] == "FIRING warning {x}"
    assert document["body"].startswith("g" * 32 + " r-7 at 0/7 http://explorer")


def test_overload_is_retried_within_the_run() -> None:
    waits: list[float] = []
    notice = made.notice()
    with receiver(503, 429) as server:
        delivery = webhook(server.url, waits).send(notice, notice.created_at)
    assert waits == list(BACKOFF_S)
    assert (delivery.attempts, delivery.error) == (3, "")
    assert len({got.body for got in server.received}) == 1


@pytest.mark.parametrize("status", [302, 400, 404])
def test_a_refusal_is_told_without_the_address(status: int) -> None:
    waits: list[float] = []
    notice = made.notice()
    with receiver(status) as server:
        delivery = webhook(server.url, waits).send(notice, notice.created_at)
    assert (waits, len(server.received)) == ([], 1)
    assert delivery.error == f"127.0.0.1:{server.server_port}: status {status}"
    assert not delivery.is_down
    assert "X-Gnomon-Signature" not in server.received[0].headers


def test_a_receiver_that_is_away_is_down() -> None:
    waits: list[float] = []
    notice = made.notice()
    port = free_port()
    delivery = webhook(f"http://127.0.0.1:{port}/t0ken", waits).send(notice, notice.created_at)
    assert (delivery.is_down, delivery.attempts, waits) == (True, 3, list(BACKOFF_S))
    assert "refused" in delivery.error
    assert "t0ken" not in delivery.error


def test_proxy_of_the_environment_is_not_asked_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    notice = made.notice()
    with receiver() as server:
        assert webhook(server.url).send(notice, notice.created_at).error == ""


def test_preview_holds_no_secret() -> None:
    notice = made.notice()
    text = webhook("http://hook.example/path?token=t0ken", secret=SECRET).preview(notice, notice.created_at)
    assert "t0ken" not in text
    assert SECRET not in text
    assert "X-Gnomon-Signature: sha256=..." in text
