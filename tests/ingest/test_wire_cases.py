"""Answers rebuilt from public bug reports: each is read, and assembled as the report says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ingest.answer import StreamReader, read_answer
from ingest.notes import NOTES
from ingest.observation import Observation

_FILE = Path(__file__).parents[1] / "data" / "wire_cases.jsonl"
_CASES: list[dict[str, Any]] = [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()]
_ANSWERS = [
    pytest.param(case, side, id=f"{case['id']}-{side}")
    for case in _CASES
    for side in ("candidate", "reference")
    if case.get(side) and case[side]["status"]
]


def _asked(case: dict[str, Any]) -> int | None:
    request = case.get("request") or {}
    asked = request.get("top_logprobs") or request.get("logprobs")
    return asked if isinstance(asked, int) and not isinstance(asked, bool) else None


def _body(answer: dict[str, Any]) -> list[bytes]:
    if "chunks_hex" in answer:
        return [bytes.fromhex(chunk) for chunk in answer["chunks_hex"]]
    return [answer["body"].encode("utf-8", "surrogatepass")]


def _read(case: dict[str, Any], side: str) -> Observation:
    answer = case[side]
    return read_answer(
        b"".join(_body(answer)),
        status=answer["status"],
        content_type=answer.get("content_type") or "",
        asked=_asked(case),
    )


@pytest.mark.parametrize(("case", "side"), _ANSWERS)
def test_reads_as_the_report_says(case: dict[str, Any], side: str) -> None:
    seen = _read(case, side)
    assert set(seen.notes) <= set(NOTES)
    if case["must_parse"] or (side == "candidate" and case.get("want", {}).get("text")):
        assert seen.failure is None, seen.failure
    if case[side]["status"] >= 400:
        assert seen.failure is not None
    if side == "candidate":
        _check(seen, case.get("want") or {})


def _check(seen: Observation, want: dict[str, Any]) -> None:
    # JSON writes a character beyond the basic plane as two halves.
    if "text" in want:
        assert seen.text == want["text"].encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    if "finish_reason" in want:
        assert seen.finish_reason == want["finish_reason"]
    if "completion_tokens" in want:
        assert seen.completion_tokens == want["completion_tokens"]
    if "tokens" in want:
        assert [token.text for token in seen.tokens] == want["tokens"]
    if "token_logprobs" in want:
        assert [token.logprob for token in seen.tokens] == want["token_logprobs"]
    if "tool_calls" in want:
        assert [[call.name, json.loads(call.arguments)] for call in seen.tool_calls] == want["tool_calls"]
    if want.get("error"):
        assert seen.failure is not None
    if "answer" in want:
        assert seen.text.rpartition("</think>")[2] == want["answer"]


@pytest.mark.parametrize(("case", "side"), _ANSWERS)
def test_read_in_pieces_is_the_same(case: dict[str, Any], side: str) -> None:
    if case[side]["status"] >= 300:
        return
    body = b"".join(_body(case[side]))
    whole = _read(case, side)
    pieces = (
        _body(case[side]) if "chunks_hex" in case[side] else [body[i : i + 7] for i in range(0, len(body), 7)]
    )
    reader = StreamReader(asked=_asked(case))
    for piece in pieces:
        reader.feed(piece)
    assert reader.finish() == whole
