"""Nothing in an answer can make a detector raise, or point outside the answer."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from compare.detect import detect
from compare.detectors.subject import Subject
from ingest.alternative import Alternative
from ingest.observation import Failure, FailureKind, Observation, ToolCall
from ingest.request import expects_json
from ingest.tokens import Token, Tokens
from tests.compare.detectors.helpers import SETTINGS

_PIECES = st.sampled_from(
    [
        '{"',
        "a",
        "\\",
        "```",
        "`",
        "<think>",
        "\ufffd",
        "\ud83d",
        "[",
        ",",
        "'",
        "0",
        "<unk>",
        "\n",
        " ",
        "关",
        "True",
        "!",
    ]
)
_TEXTS = st.one_of(
    st.text(alphabet=st.characters(), max_size=120),
    st.lists(_PIECES, max_size=80).map("".join),
    st.tuples(st.text(max_size=6), st.integers(0, 200)).map(lambda pair: pair[0] * pair[1]),
)
_LOGPROBS = st.one_of(st.just(-math.inf), st.floats(-60.0, 0.0), st.sampled_from([-9999.0, 0.0]))
_TOKENS = st.builds(
    lambda text, logprob, tops: Token(
        text, logprob, top=tuple(Alternative(t, p) for t, p in tops), ranked=len(tops)
    ),
    st.text(max_size=3),
    st.none() | _LOGPROBS,
    st.lists(st.tuples(st.text(max_size=2), _LOGPROBS), max_size=4),
)
_OBSERVATIONS = st.builds(
    Observation,
    text=_TEXTS,
    reasoning=_TEXTS,
    tool_calls=st.lists(st.builds(ToolCall, st.text(max_size=4), _TEXTS), max_size=2).map(tuple),
    tokens=st.lists(_TOKENS, max_size=40).map(Tokens),
    finish_reason=st.sampled_from([None, "stop", "length", "tool_calls", "strange"]),
    completion_tokens=st.none() | st.integers(0, 100),
    failure=st.none() | st.builds(Failure, st.sampled_from(list(FailureKind)), st.text(max_size=20)),
    notes=st.lists(st.sampled_from(["logprob_nan", "unreadable_event"]), max_size=2).map(tuple),
)
_JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_BODIES = st.dictionaries(
    st.sampled_from(
        [
            "messages",
            "prompt",
            "tools",
            "stop",
            "max_tokens",
            "logit_bias",
            "temperature",
            "response_format",
            "options",
        ]
    ),
    _JSON_VALUES,
    max_size=5,
)


@settings(max_examples=150, deadline=None)
@given(_OBSERVATIONS, st.none() | _OBSERVATIONS, _BODIES)
def test_every_finding_stands_in_the_answer(
    observation: Observation, other: Observation | None, body: dict[str, Any]
) -> None:
    subject = Subject(observation, "candidate", body, other, expects_json(body))
    findings = detect(subject, SETTINGS)
    lengths = {"characters": len(observation.text), "tokens": len(observation.tokens), "none": 0}
    for finding in findings:
        assert 0 <= finding.start <= finding.end <= lengths[finding.unit], finding
        assert finding.message
        for number in (finding.measured, finding.threshold):
            assert number is None or math.isfinite(number), finding
    assert detect(subject, SETTINGS) == findings
