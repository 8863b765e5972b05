"""Answers that were saved: a body in a file, or a case that keeps status, headers and network reads."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from ingest.answer import StreamReader, read_answer
from ingest.observation import Failure, FailureKind, Observation


class SavedAnswer(Struct, frozen=True):
    """An HTTP answer as the case format keeps it.

    `body` is the text as received; `chunks_hex` are the network reads of a stream, in hex;
    `transport_error` says how the connection ended. Status 0 means that no answer came at all.
    """

    status: int = 200
    content_type: str | None = None
    body: str | UnsetType = UNSET
    chunks_hex: list[str] | UnsetType = UNSET
    transport_error: str | None = None


class Case(Struct, frozen=True):
    """One line of a case file: an answer, perhaps the other side's, and what was asked."""

    id: str
    candidate: SavedAnswer
    reference: SavedAnswer | None = None
    request: dict[str, Any] | None = None
    reference_request: dict[str, Any] | None = None


def read_saved(answer: SavedAnswer, request: dict[str, Any]) -> Observation:
    """Read a saved answer as the endpoint client would have read it. Raises ValueError on bad hex."""
    if answer.status == 0:
        return Observation(failure=Failure(FailureKind.CUT_STREAM, answer.transport_error or "no answer"))
    asked = asked_alternatives(request)
    content_type = answer.content_type or ""
    chunks = [] if isinstance(answer.chunks_hex, UnsetType) else answer.chunks_hex
    reads = [bytes.fromhex(chunk) for chunk in chunks]
    if not isinstance(answer.body, UnsetType):
        reads.append(answer.body.encode("utf-8", "surrogatepass"))
    if answer.transport_error is None:
        return read_answer(b"".join(reads), status=answer.status, content_type=content_type, asked=asked)
    reader = StreamReader(asked=asked)
    for read in reads:
        reader.feed(read)
    return reader.finish(broken=answer.transport_error)


def asked_alternatives(request: dict[str, Any]) -> int | None:
    """How many alternatives a token the request asked for, None where it does not say."""
    for key in ("top_logprobs", "logprobs", "n_probs"):
        value = request.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None
