"""Requests that invite the failure: said once, on the candidate, and never a fault of the model."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from compare.detect import detect_pair
from compare.detectors import request_faults
from compare.detectors.subject import Subject
from compare.result import Family
from ingest.observation import Observation
from ingest.request import expects_json
from tests.compare.detectors.helpers import SETTINGS
from tests.compare.test_verdict import _pair, _said

_JSON: dict[str, Any] = {"response_format": {"type": "json_object"}}


def _codes(body: dict[str, Any], *, vocabulary: int | None = None, prompt: str = "") -> set[str]:
    asked = {"messages": [{"role": "user", "content": prompt}], **body}
    subject = Subject(Observation(text="x"), "candidate", asked, None, expects_json(asked), vocabulary)
    findings = list(request_faults.detect(subject, SETTINGS))
    assert all(finding.family is Family.REQUEST and not finding.is_fault for finding in findings)
    return {finding.code for finding in findings}


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ({"logit_bias": {"5": 100, "6": -100}}, set()),
        ({"logit_bias": {"5": -101}}, {"logit_bias_range"}),
        ({"logit_bias": [[5, 1000.0]]}, {"logit_bias_range"}),
        ({"logit_bias": {str(n): -1 for n in range(512)}}, set()),
        ({"logit_bias": {str(n): -1 for n in range(513)}}, {"logit_bias_entries"}),
        ({"allowed_token_ids": []}, {"mask_leaves_nothing"}),
        ({"guided_choice": []}, {"mask_leaves_nothing"}),
        ({"structured_outputs": {"choice": []}}, {"mask_leaves_nothing"}),
        (
            {"guided_json": {"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]}},
            {"mask_leaves_nothing"},
        ),
        ({"guided_json": {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]}}, set()),
        (
            {
                "guided_json": {
                    "properties": {},
                    "required": ["a"],
                    "additionalProperties": False,
                    "type": "object",
                }
            },
            {"mask_leaves_nothing"},
        ),
        ({"top_p": 0}, {"mask_leaves_nothing"}),
        ({"min_p": 1.5}, {"mask_leaves_nothing"}),
        ({"temperature": 0, "top_p": 0.9}, {"greedy_with_sampling"}),
        ({"temperature": 0, "top_p": 1.0, "top_k": 1, "n": 1}, set()),
        ({"temperature": 0.0, "do_sample": True}, {"greedy_with_sampling"}),
        ({"temperature": 0.7, "top_p": 0.9}, set()),
        ({"temperature": 0.0002}, {"tiny_temperature"}),
        ({"stop": ""}, {"stop_at_once"}),
        ({"stop": ["END"]}, set()),
        ({"stop": ["}"], **_JSON}, {"stop_in_structure"}),
        ({"stop": "\n"}, set()),
        ({"stop": ["x" * 100], "max_tokens": 4}, {"stop_out_of_reach"}),
        ({"min_tokens": 64, "max_tokens": 16}, {"min_over_max"}),
        ({"min_tokens": 4, "stop": ["."]}, {"stop_held_back"}),
        ({"ignore_eos": True}, {"endless"}),
        ({"ignore_eos": True, "max_tokens": 8}, set()),
    ],
)
def test_parameters(body: dict[str, Any], codes: set[str]) -> None:
    assert _codes(body) == codes


@pytest.mark.parametrize(
    ("prompt", "codes"),
    [
        ("退款失败 业务码0x7f3a9c00 请处理", {"seed_hex_after_han"}),
        ("订单号:9f86d081884c7d65", {"seed_hex_after_han"}),
        ("订单号 20261129", set()),
        ("The address is 0x7f3a9c00.", set()),
        ("a\x00b", {"seed_control_character"}),
        ("line one\n\tline two\r\n", set()),
        ("ha " * 700, {"seed_repetition"}),
        ("The ferry leaves at noon and returns at dusk, if the wind allows it. " * 3, set()),
    ],
)
def test_input_that_seeds_failures(prompt: str, codes: set[str]) -> None:
    assert _codes({}, prompt=prompt) == codes


def test_a_bias_that_forbids_the_vocabulary() -> None:
    body = {"logit_bias": {str(n): -100 for n in range(50)}}
    assert _codes(body, vocabulary=50) == {"mask_leaves_nothing"}
    assert _codes(body, vocabulary=51) == set()


def test_the_clients_request_is_judged_not_the_replayed_one() -> None:
    pair = _pair(_said("Yes."), _said("Yes."))
    mirrored = msgspec.structs.replace(pair.mirrored, body={"temperature": 0.0002})
    pair = msgspec.structs.replace(pair, mirrored=mirrored, candidate_body={"temperature": 0})
    findings = detect_pair(pair, SETTINGS, None)
    assert [(finding.side, finding.code) for finding in findings] == [("candidate", "tiny_temperature")]
