"""A golden case: one request, what is expected of the answer, and how it is checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from compare.golden.checks import Check
from ingest.observation import Observation, ToolCall
from ingest.records import MirroredRequest, SourcePosition
from ingest.request import request_hash

DEFAULT_PATH = "/v1/chat/completions"


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The expected answer. A `finish_reason` of None may be any."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None

    def as_observation(self) -> Observation:
        """The same as an endpoint's outcome, to compare with."""
        return Observation(
            text=self.text, tool_calls=self.tool_calls, finish_reason=self.finish_reason or "stop"
        )


class GoldenCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case of a set. `body` is the request as mirrored; replay makes of it what is sent."""

    case_id: str
    body: dict[str, Any]
    path: str = DEFAULT_PATH
    expected: Expected | None = None
    expected_by: Literal["reference", "given", ""] = ""
    checks: tuple[Check, ...] = ()
    note: str = ""
    source: Literal["stored", "file"] = "file"
    source_experiment: str = ""
    position: SourcePosition | None = None
    request_id: str = ""
    tenant: str = ""
    route: str = ""
    is_redacted: bool = False

    def case_hash(self) -> str:
        """32 hex characters of what decides its result: request, expectation and checks."""
        decides = msgspec.to_builtins((self.body, self.path, self.expected, self.checks, self.route))
        return _hash(json.dumps(decides, sort_keys=True).encode())

    def mirrored(self) -> MirroredRequest:
        """The request as replay takes it. Its times say nothing."""
        now = datetime.now(UTC)
        return MirroredRequest(
            position=self.position or SourcePosition("golden", "golden", 0, 0),
            request_id=self.request_id or self.case_id,
            body=self.body,
            request_hash=request_hash(self.body),
            mirrored_at=now,
            ingested_at=now,
            tenant=self.tenant,
            route=self.route,
            endpoint=self.path,
        )


def set_hash(cases: Iterable[GoldenCase]) -> str:
    """32 hex characters of a whole set: equal for two runs of the same cases."""
    lines = sorted(f"{case.case_id}\0{case.case_hash()}" for case in cases)
    return _hash("\n".join(lines).encode("utf-8", "replace"))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
