"""What an HTTP error says: the server's words in one line, and which failure or absence it is."""

from __future__ import annotations

import json

from ingest.observation import Failure, FailureKind

AWAY_STATUSES = frozenset({429, 502, 503, 504})
"""After the retries these say that the endpoint is away; nothing about the model."""

MAX_MESSAGE = 300
"""Characters of a server's message that are kept."""

_WORD_KEYS = ("error", "message", "detail", "errors", "msg")

_CONTEXT_WORDS = (
    "exceed_context_size",
    "context_length_exceeded",
    "context size",
    "context length",
    "context window",
    "maximum context",
    "max_model_len",
    "prompt is too long",
    "longer than the model",
    "input is too long",
    "inputs tokens + max_new_tokens",
    "too many tokens",
)


def is_retried(status: int) -> bool:
    """Whether the same call may succeed later: 408, 409, 429 and every 5xx but 501 and 505."""
    return status in (408, 409, 429) or (status >= 500 and status not in (501, 505))


def message_in(body: bytes) -> str:
    """Return the server's own words from an error body of any shape: one line, at most MAX_MESSAGE long."""
    text = body.decode("utf-8", "replace").strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    return words_of(value, text)


def words_of(value: object, otherwise: str = "") -> str:
    """Return the message within a decoded error of any shape, as `message_in` does."""
    for _ in range(4):
        if isinstance(value, list) and value:
            value = value[0]
        if not isinstance(value, dict):
            break
        value = next(
            (value[key] for key in ("error", "message", "detail", "errors", "msg") if value.get(key)),
            otherwise,
        )
    words = value if isinstance(value, str) and value else otherwise
    line = " ".join(words[: 20 * MAX_MESSAGE].split())[:MAX_MESSAGE]
    # An escape in JSON can be half a surrogate pair, which no store takes.
    return line.encode("utf-8", "replace").decode("utf-8") or "no message"


def says_context_exceeded(body: bytes) -> bool:
    """Whether an error body says that the prompt does not fit into the model's context."""
    text = body[:65536].decode("utf-8", "replace").lower()
    return any(words in text for words in _CONTEXT_WORDS)


def failure_of_status(status: int, body: bytes) -> Failure:
    """Return the failure that an HTTP error is. llama.cpp of old says 500 for a prompt too long."""
    kind = FailureKind.HTTP_ERROR
    if status in (400, 413, 422, 500) and says_context_exceeded(body):
        kind = FailureKind.CONTEXT_EXCEEDED
    return Failure(kind, message_in(body), status)
