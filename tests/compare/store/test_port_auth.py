"""The port's tokens are compared in constant time, both of them, whatever is given."""

from __future__ import annotations

import hmac
from urllib.parse import urlencode

import pytest
from starlette.requests import Request

from compare.store.port_auth import Tokens
from compare.store.port_errors import Refused

WRITER, READER = "w" * 43, "r" * 43


def asking(token: str) -> Request:
    query = urlencode({"password": token}).encode()
    return Request({"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": query})


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, bytes]]:
    """What is handed to the comparison whose time does not depend on where the two differ."""
    calls: list[tuple[bytes, bytes]] = []
    true = hmac.compare_digest

    def spy(given: bytes, token: bytes) -> bool:
        calls.append((given, token))
        return true(given, token)

    monkeypatch.setattr("compare.store.port_auth.hmac.compare_digest", spy)
    return calls


@pytest.mark.parametrize(
    ("token", "is_writer"),
    [(WRITER, True), (READER, False), ("", None), ("w", None), (WRITER + "w", None), ("é" * 43, None)],
)
def test_every_token_is_compared_whole_with_both(
    compared: list[tuple[bytes, bytes]], token: str, is_writer: bool | None
) -> None:
    tokens = Tokens(WRITER, READER)
    if is_writer is None:
        with pytest.raises(Refused, match="Authentication failed") as caught:
            tokens.is_writer(asking(token))
        assert "w" * 10 not in str(caught.value)
    else:
        assert tokens.is_writer(asking(token)) is is_writer
    given = token.encode()
    assert compared == [(given, WRITER.encode()), (given, READER.encode())]


class Unequal(bytes):
    """A token that may only be compared by `hmac.compare_digest`."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared by ==, whose time tells how much of it is right")

    __hash__ = bytes.__hash__


def test_no_token_is_compared_in_another_way() -> None:
    tokens = Tokens(WRITER, READER)
    tokens._writer_token, tokens._reader_token = Unequal(WRITER.encode()), Unequal(READER.encode())
    assert tokens.is_writer(asking(WRITER))
    with pytest.raises(Refused):
        tokens.is_writer(asking("neither"))
