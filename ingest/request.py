"""What a mirrored request is: its hash, whether it can be compared at all, which API it is for."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any, Literal

import msgspec

from ingest.outcome import Skipped, SkipReason
from ingest.records import MirroredRequest
from ingest.structure import ExpectedStructure, expects_json

__all__ = ["ExpectedStructure", "api_of", "expects_json", "request_hash", "skip_reason"]

Api = Literal["chat", "completions"]

_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal", "thinking", "reasoning"})
_LONGEST_DETAIL = 80


def request_hash(body: dict[str, Any]) -> str:
    """First 32 hex characters of the SHA-256 of the body's canonical JSON.

    Canonical: keys sorted by code point, no white space, UTF-8 without escapes where none is
    needed. `1` and `1.0` are different.
    """
    return hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()[:32]


def api_of(endpoint: str) -> Api | None:
    """Which API a URL path belongs to; None for one that is not replayed.

    Prefixes (`/openai/deployments/x`), queries and a last slash are ignored. It must begin with a slash:
    behind an endpoint's address `@elsewhere/chat/completions` would name another host.
    """
    if not endpoint.startswith("/"):
        return None
    path = endpoint.partition("?")[0].rstrip("/")
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith("/completions"):
        return "completions"
    return None


def skip_reason(mirrored: MirroredRequest, models: Collection[str]) -> Skipped | None:
    """Why this request is left out on purpose, or None if it can be replayed.

    `models` holds the served names of the model map; `*` in it stands for any. Asked in the
    order stateful, endpoint, batch, modality, model: the first that applies is the reason.
    """
    body = mirrored.body
    if body.get("previous_response_id") or body.get("conversation"):
        return Skipped(SkipReason.STATEFUL, "it continues a conversation that the server keeps")
    if api_of(mirrored.endpoint) is None:
        return Skipped(SkipReason.ENDPOINT, f"{_short(mirrored.endpoint)} is not replayed")
    prompts = _prompt_count(body.get("prompt"))
    if prompts != 1:
        return Skipped(SkipReason.BATCH, f"{prompts} prompts in one request")
    part = _foreign_part(body)
    if part is not None:
        return Skipped(SkipReason.MODALITY, f"{_short(part)} in the request")
    if mirrored.served_model not in models and "*" not in models:
        return Skipped(SkipReason.MODEL, f"no row for model {_short(mirrored.served_model)!r}")
    return None


def _prompt_count(prompt: Any) -> int:
    """A string, one list of token ids and nothing at all count as one."""
    if not isinstance(prompt, list) or all(isinstance(item, int) for item in prompt):
        return 1
    return len(prompt)


def _foreign_part(body: dict[str, Any]) -> str | None:
    """The name of the first part that is no text: an image, audio, a file."""
    modalities = body.get("modalities")
    if isinstance(modalities, list):
        for modality in modalities:
            if modality != "text":
                return f"modality {modality}"
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else ():
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(kind, str) and kind not in _TEXT_PARTS:
                return kind
    return None


def _short(text: str) -> str:
    line = text if text.isprintable() else repr(text)[1:-1]
    return line if len(line) <= _LONGEST_DETAIL else line[:_LONGEST_DETAIL] + "..."
