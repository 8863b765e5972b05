"""Mail against a real SMTP server on loopback, with and without TLS."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP as POLICY
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from compare.alerts.notify import make_notice
from compare.alerts.sinks.mail import Mail
from ingest.settings_notify import EmailSink
from tests.compare.alerts import made
from tests.compare.alerts.sinks.receivers import certificate, free_port


class Inbox:
    """Notes each mail with its envelope."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], EmailMessage, bool]] = []
        self.refuse: dict[str, str] = {}

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refuse:
            return self.refuse[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=POLICY)
        assert isinstance(mail, EmailMessage)
        self.mails.append((list(envelope.rcpt_tos), mail, session.ssl is not None))
        return "250 OK"


@contextmanager
def server(port: int = 0, **options: Any) -> Iterator[tuple[Inbox, int]]:
    inbox = Inbox()
    controller = Controller(inbox, hostname="127.0.0.1", port=port or free_port(), **options)
    controller.start()
    try:
        yield inbox, controller.port
    finally:
        controller.stop()


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("tls"))


def tls_server(pem: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


def mail(port: int, **settings: Any) -> EmailSink:
    return EmailSink(
        **{
            "host": "127.0.0.1",
            "port": port,
            "sender": "gnomon@example.com",
            "recipients": ["a@example.com", "b@example.com"],
            "tls": "none",
            **settings,
        }
    )


def test_a_mail_with_hostile_names_keeps_its_headers() -> None:
    alert = made.alert(
        dimension="route", slice="x\r\nBcc: evil@example.com\r\n\r\nhi", summary="é 日本\r\n.\r\nQUIT"
    )
    notice = make_notice(made.group(alert, evidence={}), "fired", made.NOTIFY, made.now())
    with server() as (inbox, port):
        assert Mail("email:team", mail(port)).send(notice, notice.created_at).error == ""
    ((to, got, _),) = inbox.mails
    assert to == ["a@example.com", "b@example.com"]
    assert got["Bcc"] is None
    assert got["Subject"] == (
        "FIRING warning: e: q4: regression_rate in route x\\r\\nBcc: evil@example.com\\r\\n\\r\\nhi"
    )
    assert got["To"] == "a@example.com, b@example.com"
    assert got["Message-ID"] == f"<{'g' * 32}.1@example.com>"
    assert "é 日本\\r\\n.\\r\\nQUIT" in got.get_content()


def test_notices_of_a_group_are_one_thread() -> None:
    first = made.notice()
    second = make_notice(made.group(made.alert(), notices=(first,)), "reminder", made.NOTIFY, made.now())
    with server() as (inbox, port):
        sink = Mail("email:team", mail(port))
        for one in (first, second):
            sink.send(one, one.created_at)
    assert [got["References"] for _, got, _ in inbox.mails] == [None, f"<{'g' * 32}.1@example.com>"]


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_over_tls_with_a_login(pem: Path, tls: str) -> None:
    seen: list[tuple[bytes, bytes]] = []

    def login(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        seen.append((data.login, data.password))
        return AuthResult(success=data.password == b"hush", handled=False)

    is_late = tls == "starttls"
    context = tls_server(pem)
    how: dict[str, Any] = (
        {"tls_context": context, "require_starttls": True} if is_late else {"ssl_context": context}
    )
    trusted = ssl.create_default_context(cafile=str(pem))
    with server(authenticator=login, auth_required=is_late, auth_require_tls=is_late, **how) as (inbox, port):
        right = Mail("email:t", mail(port, tls=tls, username="u", password="hush"), context=trusted)
        assert right.send(made.notice(), made.now()).error == ""
        wrong = Mail("email:t", mail(port, tls=tls, username="u", password="other"), context=trusted)
        refused = wrong.send(made.notice(), made.now())
        # Its certificate is signed by nobody that this machine trusts.
        unknown = Mail("email:t", mail(port, tls=tls)).send(made.notice(), made.now())
    assert seen[0] == (b"u", b"hush")
    assert len(inbox.mails) == 1
    assert inbox.mails[0][2] or tls == "tls"
    assert refused.error == f"127.0.0.1:{port}: the login was refused (535)"
    assert "certificate" in unknown.error.lower()


def test_without_starttls_nothing_is_sent_in_the_clear() -> None:
    with server() as (inbox, port):
        delivery = Mail("email:t", mail(port, tls="starttls")).send(made.notice(), made.now())
    assert inbox.mails == []
    assert "STARTTLS" in delivery.error


def test_refusals_and_outages_are_told_apart() -> None:
    with server() as (inbox, port):
        sink = Mail("email:t", mail(port))
        inbox.refuse = {"a@example.com": "550 no such user"}
        assert sink.send(made.notice(), made.now()).error == ""
        inbox.refuse |= {"b@example.com": "550 no such user"}
        refused = sink.send(made.notice(), made.now())
    away = sink.send(made.notice(), made.now())
    assert [to for to, _, _ in inbox.mails] == [["b@example.com"]]
    assert ("550" in refused.error, refused.is_down) == (True, False)
    assert ("refused" in away.error, away.is_down) == (True, True)
