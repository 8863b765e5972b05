"""Honest answers that look odd, and faults beside them, each alone and in sight of another answer.

`look_alikes.jsonl` holds what must stay quiet, `text_faults.jsonl` what must be found. A line has prompt,
text and how the answer ended; `said` names families that may be mentioned as no fault; `sides` keeps a
look-alike from an other side beside which it would be a fault.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compare.detectors.subject import Subject
from ingest.observation import Observation, ToolCall
from tests.compare.detectors.helpers import found, subject

_DATA = Path(__file__).parents[2] / "data"
_OTHER = (
    "Sure. Here is a short answer to what you asked, which I hope will be of use to you; if it is not, then "
    "please tell me what you need."
)
_FERRY = (
    "The ferry leaves at noon and comes back in the evening, and the tickets are sold on board so that you "
    "do not need to book."
)


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_DATA / name).read_text(encoding="utf-8").splitlines()]


def _subject(case: dict[str, Any], other: Observation | None) -> Subject:
    return subject(
        case["text"],
        prompt=case["prompt"],
        finish=case["finish"],
        body=case.get("body"),
        other=other,
        completion_tokens=case.get("completion_tokens"),
        reasoning=case.get("reasoning", ""),
        tool_calls=_calls(case),
    )


def _calls(case: dict[str, Any]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(name, arguments) for name, arguments in case.get("tool_calls", ()))


def _other_of(case: dict[str, Any], side: str) -> Observation | None:
    if side == "alone":
        return None
    if side == "prose":
        return Observation(text=_OTHER, finish_reason="stop")
    return Observation(
        text=case["text"],
        finish_reason=case["finish"],
        reasoning=case.get("reasoning", ""),
        tool_calls=_calls(case),
    )


@pytest.mark.parametrize("side", ["alone", "same", "prose"])
@pytest.mark.parametrize("case", _lines("look_alikes.jsonl"), ids=lambda case: case["name"])
def test_what_only_looks_odd_is_left_alone(case: dict[str, Any], side: str) -> None:
    if side not in case.get("sides", ("alone", "same", "prose")):
        side = "same"
    seen = found(_subject(case, _other_of(case, side)))
    told = {code for code, finding in seen.items() if finding.is_fault or code[0] not in case.get("said", ())}
    assert told <= {code for code in seen if code[0] == "request"}


@pytest.mark.parametrize("has_other", [False, True], ids=["alone", "pair"])
@pytest.mark.parametrize("case", _lines("text_faults.jsonl"), ids=lambda case: case["name"])
def test_what_is_a_fault_is_found(case: dict[str, Any], has_other: bool) -> None:
    # Some faults are told by comparison only: they bring their other side along.
    text = case.get("other") or (_FERRY if has_other else None)
    other = None if text is None else Observation(text=text, finish_reason="stop")
    assert case["family"] in {family for family, _ in found(_subject(case, other))}
