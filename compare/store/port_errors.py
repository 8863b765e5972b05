"""Errors as a ClickHouse server tells them over HTTP."""

from __future__ import annotations

import re
import secrets
import string

# As `exceptionCodeToHTTPStatus` of ClickHouse's sources; every other code is 500. 202 is 503 here, so
# that clients which retry on overload (clickhouse-connect does) try again.
_STATUS = {
    194: 401,
    **dict.fromkeys((192, 193, 497, 512, 516), 403),
    **dict.fromkeys((6, 8, 15, 25, 26, 27, 36, 37, 38, 41, 44, 53, 62, 72, 117, 123, 167, 168, 223), 400),
    **dict.fromkeys((321, 376, 427, 441, 675, 676), 400),
    **dict.fromkeys((46, 47, 50, 56, 60, 63, 73, 78, 81, 115, 152, 336, 511), 404),
    **dict.fromkeys((76, 202, 209, 439), 503),
    48: 501,
    159: 408,
    229: 413,
    381: 411,
    779: 415,
}


# The name and the version come again with every layer that the error went through.
_ENDING = re.compile(r"(\s*(\(version [^()]*(\([^()]*\))?\)|\([A-Z][A-Z0-9_]+\))\.?)+$")


class Refused(Exception):
    """An answer with ClickHouse's error code and name."""

    def __init__(self, code: int, name: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.name = name

    @property
    def text(self) -> str:
        """The error as a server words it."""
        return f"Code: {self.code}. DB::Exception: {self} ({self.name})"

    @property
    def status(self) -> int:
        """The HTTP status that a server sends with it."""
        return _STATUS.get(self.code, 500)


def of_engine(error: RuntimeError) -> Refused:
    """The engine's error with the code and name that its text ends with."""
    text = str(error)
    codes = re.findall(r"Code: (\d+)\. ", text)
    names = re.findall(r"\(([A-Z][A-Z0-9_]+)\)", text)
    message = re.sub(r"^(.*?Code: \d+\. DB::Exception: )+", "", text, flags=re.DOTALL)
    message = _ENDING.sub("", message)
    return Refused(
        int(codes[0]) if codes else 1002, names[-1] if names else "UNKNOWN_EXCEPTION", message.rstrip()
    )


def new_tag() -> str:
    """16 letters that a result cannot hold by chance, told in X-ClickHouse-Exception-Tag."""
    return "".join(secrets.choice(string.ascii_lowercase) for _ in range(16))


def exception_block(refused: Refused, tag: str) -> bytes:
    """What a server writes into a result that fails after it has begun, since version 25.11."""
    text = refused.text.encode()
    return b"\r\n__exception__\r\n%s\r\n%s\n%d %s\r\n__exception__\r\n" % (
        tag.encode(),
        text,
        len(text) + 1,
        tag.encode(),
    )
