"""What one endpoint did with one request. A model's failure is a value here, never an exception."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec

MAX_LOGPROB_TOKENS = 2048
"""Logprobs are kept for this many tokens (1.85 KB a token at top-20); the text is kept whole."""


TokenId = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""No vocabulary is larger; what lies outside is no id."""


_BYTES = msgspec.json.Decoder(list[int] | None)
_ABSENT = msgspec.Raw(b"null")
if TYPE_CHECKING:
    _GivenBytes = msgspec.Raw | bytes | None
else:  # What comes from the wire is not looked at; what code passes is not checked.
    _GivenBytes = msgspec.Raw


# Decoded straight from an answer, hence the names on the wire. No reference cycle can pass through it, so
# the garbage collector need not look at the thousands that an answer holds.
class Alternative(
    msgspec.Struct, frozen=True, gc=False, eq=False, rename={"text": "token", "given_bytes": "bytes"}
):
    """One entry of a server's list for a position.

    `logprob` is natural; `-inf` means impossible, however the server wrote it (null, -9999, ...). Few ever
    ask for the bytes, so they stay as the server wrote them until `raw` is read.
    """

    text: str
    logprob: float
    given_bytes: _GivenBytes = _ABSENT
    id: TokenId | None = None

    @property
    def raw(self) -> bytes | None:
        """The token's bytes, None where the server gave none that can be believed."""
        given = self.given_bytes
        if isinstance(given, msgspec.Raw):
            try:
                values = _BYTES.decode(given)
                given = None if values is None else bytes(values)
            except (msgspec.MsgspecError, ValueError):
                return None
            if self.id is None and "\ufffd" in self.text and given == self.text.encode():
                # The bytes of U+FFFD stand for any byte that is no character by itself.
                return None
        return given

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Alternative):
            return NotImplemented
        return (self.logprob, self.text, self.id) == (other.logprob, other.text, other.id) and (
            self.raw == other.raw
        )

    def __hash__(self) -> int:
        return hash((self.text, self.logprob, self.id))


class Token(msgspec.Struct, frozen=True, gc=False):
    """One generated token with its list of alternatives.

    `top` is in the server's order and may hold the sampled token as an appended entry beyond
    the ranked ones (`ranked` is how many lead the list; known mass beyond them is never the
    bound m). `logprob` is None where the server gave none or one that cannot be trusted.
    """

    text: str
    logprob: float | None
    raw: bytes | None = None
    id: int | None = None
    top: tuple[Alternative, ...] = ()
    ranked: int = 0


class ToolCall(msgspec.Struct, frozen=True):
    """One tool call; `arguments` is the JSON text as the model wrote it."""

    name: str
    arguments: str
    id: str | None = None


class FailureKind(StrEnum):
    """How an endpoint failed to answer. Each is evidence about that side."""

    HTTP_ERROR = "http_error"
    CONTEXT_EXCEEDED = "context_exceeded"
    FIRST_TOKEN_TIMEOUT = "first_token_timeout"
    IDLE_TIMEOUT = "idle_timeout"
    TOTAL_TIMEOUT = "total_timeout"
    CUT_STREAM = "cut_stream"
    ERROR_IN_STREAM = "error_in_stream"
    UNREADABLE = "unreadable"


class Failure(msgspec.Struct, frozen=True):
    """The failure of one call: its kind, the HTTP status if there was one, the server's words."""

    kind: FailureKind
    message: str
    status: int | None = None


class Timings(msgspec.Struct, frozen=True):
    """Milliseconds from sending the request. `first_token_ms` is None without streaming."""

    total_ms: float
    first_token_ms: float | None = None


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint's outcome for one request."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tokens: tuple[Token, ...] = ()
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    timings: Timings | None = None
    failure: Failure | None = None
    reported_model: str | None = None
    notes: tuple[str, ...] = ()
    """What the reader repaired or could not trust, as codes of `ingest.notes.NOTES`."""
    has_done: bool = True
    """False where a stream ended without its end mark."""

    @property
    def has_answer(self) -> bool:
        """Whether the endpoint answered at all (it may have answered badly)."""
        return self.failure is None
