"""What one endpoint did with one request. A model's failure is a value here, never an exception."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ingest.tokens import Tokens

MAX_LOGPROB_TOKENS = 2048
"""Logprobs are kept for this many tokens (1.85 KB a token at top-20); the text is kept whole."""


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
    tokens: Tokens = Tokens()
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
