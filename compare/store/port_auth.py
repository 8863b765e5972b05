"""Who asks: the writer's or the reader's token, wherever ClickHouse clients put a password."""

from __future__ import annotations

import base64
import binascii
import hmac

from starlette.requests import Request

from compare.store.port_errors import Refused


class Tokens:
    """The two tokens of a port. The user's name is not looked at."""

    def __init__(self, writer_token: str, reader_token: str) -> None:
        self._writer_token = writer_token.encode()
        self._reader_token = reader_token.encode()

    def is_writer(self, request: Request) -> bool:
        """Whether it is the writer's token, else the reader's. Raises Refused for any other."""
        given = _token_of(request).encode()
        # Both are always compared, so that the time taken tells nothing.
        is_writer = hmac.compare_digest(given, self._writer_token)
        is_reader = hmac.compare_digest(given, self._reader_token)
        if not (is_writer or is_reader):
            message = "Authentication failed: the password must be a token from gnomon.lock."
            raise Refused(516, "AUTHENTICATION_FAILED", message)
        return is_writer


def _token_of(request: Request) -> str:
    """The password; empty if there is none."""
    key = request.headers.get("x-clickhouse-key") or request.query_params.get("password")
    if key:
        return key
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""
