"""Mail by SMTP: STARTTLS, TLS from the first byte, or none.

Headers are one line by construction: the title is made visible, so that a line end in it is an escape, and
`EmailMessage` refuses any that is left. The Message-ID is the notice's key, so that mail systems know a
second copy; all notices of a group are one thread.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from compare.alerts.notice import Delivery, Notice
from compare.alerts.sinks.text import render
from ingest.settings_notify import EmailSink

TIMEOUT_S = 15.0


class Mail:
    """One list of recipients through one server. `context` is replaced in tests."""

    def __init__(self, name: str, settings: EmailSink, *, context: ssl.SSLContext | None = None) -> None:
        self.name = name
        self._settings = settings
        self._context = context
        self._where = f"{settings.host}:{settings.true_port}"

    def send(self, notice: Notice, now: datetime) -> Delivery:
        """Send one notice. One attempt a run. See `Sink`."""
        message = self._message(notice)
        try:
            with self._connected() as server:
                if self._settings.username is not None and self._settings.password is not None:
                    server.login(self._settings.username, self._settings.password)
                # Some recipients refused are no error: the others have it, and would have it twice.
                server.send_message(message)
        except smtplib.SMTPAuthenticationError as error:
            # The answer may repeat what was sent.
            return Delivery(1, f"{self._where}: the login was refused ({error.smtp_code})", True)
        except (smtplib.SMTPRecipientsRefused, smtplib.SMTPNotSupportedError) as error:
            return Delivery(1, f"{self._where}: {_line(error)}")
        except smtplib.SMTPResponseException as error:
            is_down = 400 <= error.smtp_code < 500
            return Delivery(1, f"{self._where}: {error.smtp_code} {_line(error.smtp_error)}", is_down)
        except (smtplib.SMTPException, OSError) as error:
            return Delivery(1, f"{self._where}: {_line(error)}", True)
        return Delivery(1)

    def preview(self, notice: Notice, now: datetime) -> str:
        """The mail. See `Sink`."""
        return f"mail by {self._where} ({self._settings.tls})\n\n{self._message(notice).as_string()}"

    def _connected(self) -> smtplib.SMTP:
        settings = self._settings
        if settings.tls == "tls":
            return smtplib.SMTP_SSL(
                settings.host, settings.true_port, timeout=TIMEOUT_S, context=self._secure()
            )
        server = smtplib.SMTP(settings.host, settings.true_port, timeout=TIMEOUT_S)
        if settings.tls == "starttls":
            try:
                # Refused, this raises: nothing is ever sent in the clear instead.
                server.starttls(context=self._secure())
            except (smtplib.SMTPException, OSError):
                server.close()
                raise
        return server

    def _secure(self) -> ssl.SSLContext:
        return self._context or ssl.create_default_context()

    def _message(self, notice: Notice) -> EmailMessage:
        title, body = render(notice, self._settings)
        message = EmailMessage(policy=SMTP)
        message["From"] = self._settings.sender
        message["To"] = ", ".join(self._settings.recipients)
        message["Subject"] = title
        message["Date"] = format_datetime(notice.created_at)
        domain = self._settings.sender.rpartition("@")[2]
        message["Message-ID"] = f"<{notice.group_key}.{notice.number}@{domain}>"
        if notice.number > 1:
            message["References"] = f"<{notice.group_key}.1@{domain}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(body + "\n")
        return message


def _line(error: object) -> str:
    text = error.decode("utf-8", "replace") if isinstance(error, bytes) else str(error)
    if isinstance(error, socket.gaierror):
        text = error.strerror or text
    return " ".join(ascii(text)[1:-1].split())[:300]
