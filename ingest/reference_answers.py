"""A reference's answers that are known already: what names one, and what a replay is told of it.

The same request asked of the same server in the same way need not be asked again, so a later experiment
with the same reference reuses what an earlier one was answered.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal, Protocol

import msgspec

from ingest.observation import Observation
from ingest.records import SourcePosition

AnswerRole = Literal["reference", "reference_again"]

_NOT_ASKED = ("cache_salt", "return_token_ids")
"""What changes nothing about the answer: the salt names the experiment, ids are told beside the text."""


class ReferenceAnswer(msgspec.Struct, frozen=True):
    """What names one of a pair's reference answers; `is_reused`: it was known, and nobody was asked."""

    role: AnswerRole
    asked_hash: str
    is_reused: bool


class KnownAnswer(msgspec.Struct, frozen=True):
    """A reference's answer exactly as it was read, and the vocabulary's size that its server told."""

    observation: Observation
    vocabulary_size: int | None


class KnowsAnswers(Protocol):
    """What is known of the requests under way."""

    def find(self, position: SourcePosition, role: AnswerRole, asked_hash: str) -> KnownAnswer | None:
        """Return the answer, None where it must be asked for. Never blocks."""


def asked_hash(url: str, path: str, role: AnswerRole, body: dict[str, Any]) -> str:
    """Return 32 hex characters of the SHA-256 of everything that decides the answer.

    That is the server's URL, the path, first or second answer, and the body: model, prompt, mode, seed, cap
    and top-k are in it.
    """
    asked = {key: value for key, value in body.items() if key not in _NOT_ASKED}
    content = msgspec.json.encode((url.rstrip("/"), path, role, asked), order="sorted")
    return hashlib.sha256(content).hexdigest()[:32]
