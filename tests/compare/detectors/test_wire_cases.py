"""Answers rebuilt from public bug reports: what must be found in each, and what must not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compare.detect import detect
from compare.detectors.subject import Subject
from compare.result import Side
from ingest.answer import read_answer
from ingest.observation import Failure, FailureKind, Observation
from ingest.request import expects_json
from ingest.settings import DetectorSettings

_FILE = Path(__file__).parents[2] / "data" / "wire_cases.jsonl"
_CASES: list[dict[str, Any]] = [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()]


def _read(answer: dict[str, Any], request: dict[str, Any]) -> Observation:
    if answer["status"] == 0:
        return Observation(failure=Failure(FailureKind.CUT_STREAM, answer["transport_error"]))
    chunks = answer.get("chunks_hex")
    body = answer["body"].encode() if chunks is None else bytes.fromhex("".join(chunks))
    asked = request.get("top_logprobs") or request.get("logprobs")
    return read_answer(
        body,
        status=answer["status"],
        content_type=answer.get("content_type") or "",
        asked=None if isinstance(asked, bool) else asked,
    )


def _families(case: dict[str, Any], side: Side) -> set[str]:
    requests = {"candidate": case.get("request") or {}}
    requests["reference"] = case.get("reference_request") or requests["candidate"]
    sides = {name: _read(case[name], requests[name]) for name in requests if case.get(name)}
    other = sides.get("reference" if side == "candidate" else "candidate")
    subject = Subject(sides[side], side, requests[side], other, expects_json(requests[side]))
    return {finding.family.value for finding in detect(subject, DetectorSettings())}


@pytest.mark.parametrize("case", _CASES, ids=[case["id"] for case in _CASES])
def test_fires_and_stays_quiet_as_the_report_says(case: dict[str, Any]) -> None:
    found = _families(case, "candidate")
    assert set(case["fire"]) <= found, case["note"]
    assert not set(case["quiet"]) & found, case["note"]


@pytest.mark.parametrize(
    "case",
    [c for c in _CASES if c["fire"] and c.get("reference", {}).get("body") == c["candidate"].get("body")],
)
def test_what_both_sides_show_is_found_on_both(case: dict[str, Any]) -> None:
    assert set(case["fire"]) <= _families(case, "reference")
