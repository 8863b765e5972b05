"""Empty, cut, broken, garbled and foreign text, and the transport that lost it."""

from __future__ import annotations

from typing import Any

import pytest

from compare.detectors.subject import Subject
from ingest.observation import Failure, FailureKind, Observation
from tests.compare.detectors.helpers import families, faults, found, subject

_LONG_NAME = "main_" + "_".join(["rebind", "freeze", "use", "order", "table", "list"] * 5)


def _codes(one: Subject, family: str) -> dict[str, bool]:
    return {code: finding.is_fault for (name, code), finding in found(one).items() if name == family}


@pytest.mark.parametrize(
    ("one", "codes"),
    [
        (subject(""), {"empty": True}),
        (subject("", completion_tokens=1), {"empty": True}),
        (subject("", completion_tokens=37), {"swallowed": True}),
        (subject("  \n "), {"blank": True}),
        (subject("", reasoning="Let me think."), {"thinking_only": True}),
        (
            subject("", reasoning="Let me", finish="length", completion_tokens=9, body={"max_tokens": 9}),
            {"thinking_only": False},
        ),
        (subject("Long ago there was", prompt="Long ago there was"), {"echo": True}),
        (subject("yes", prompt="yes"), {}),
        (subject("Hi"), {}),
        (
            subject(
                "Repeat this sentence after me.",
                prompt="Repeat this sentence after me.",
                other=Observation(text="Repeat this sentence after me."),
            ),
            {},
        ),
    ],
)
def test_empty(one: Subject, codes: dict[str, bool]) -> None:
    assert _codes(one, "empty") == codes


def test_an_error_is_no_empty_answer() -> None:
    for kind in FailureKind:
        observation = Observation(failure=Failure(kind, "boom", 500))
        assert "empty" not in families(Subject(observation, "candidate", {}))


@pytest.mark.parametrize(
    ("text", "finish", "body", "used", "codes"),
    [
        ("It goes on", "length", {"max_tokens": 50}, 50, {}),
        ("It goes on:\n```\nx = 1", "length", {"max_tokens": 50}, 50, {"limit": False}),
        ("It goes on", "length", {"max_tokens": 50}, None, {}),
        ('{"a": [1, 2', "length", {"max_tokens": 50}, None, {"limit": False}),
        ("It goes on", "length", {"max_completion_tokens": 4096}, 38, {"limit_not_reached": True}),
        ("It goes on", "length", {}, 38, {"engine_limit": False}),
        ("weights are set by", "stop", {"max_tokens": 20}, 20, {"hidden_limit": False}),
        ("A whole sentence.", "stop", {"max_tokens": 20}, 20, {}),
        ("```python\nx = 1\n", "stop", {}, None, {"open_fence": True}),
        ("```python\nx = 1\n", "stop", {"stop": ["\n\n"]}, None, {"open_fence": False}),
        ("```python\nx = 1\n```\nDone.", "stop", {}, None, {}),
        ('{"a": [1, 2', "stop", {}, None, {"open_json": True}),
        ("run `", "stop", {"max_tokens": -1}, None, {"open_code_span": True}),
        ("Choose one of these (", "stop", {}, None, {"mid_air": True}),
        ("<think>Let me see", "stop", {}, None, {"open_thinking": True}),
        ("<think>Let me see</think>Blue.", "stop", {}, None, {}),
        ("Write `<think>` first, then the answer.", "stop", {}, None, {}),
        ("Hi", "stop", {}, None, {}),
    ],
)
def test_truncation(
    text: str, finish: str, body: dict[str, Any], used: int | None, codes: dict[str, bool]
) -> None:
    assert _codes(subject(text, finish=finish, body=body, completion_tokens=used), "truncation") == codes


def test_the_engines_limit_is_a_fault_where_the_other_side_ended_by_itself() -> None:
    other = Observation(text="Done.", finish_reason="stop")
    assert _codes(subject("on and", finish="length", other=other), "truncation") == {"engine_limit": True}


def test_half_an_answer_lost_on_the_way() -> None:
    observation = Observation(text="Half an", failure=Failure(FailureKind.CUT_STREAM, "reset by peer"))
    one = Subject(observation, "candidate", {})
    assert _codes(one, "truncation") == {"lost": True}
    assert _codes(one, "sse") == {"cut_stream": True}


def test_replacement_characters_unless_quoted() -> None:
    finding = found(subject("ab\ufffd\ufffdc"))[("utf8", "replacement_character")]
    assert (finding.start, finding.end, finding.measured) == (2, 4, 2.0)
    assert "utf8" not in families(subject("\ufffd means", prompt="What is \ufffd?"))
    assert _codes(subject("half of \ufffd", finish="length"), "utf8") == {"cut_character": False}


def test_transport() -> None:
    assert _codes(subject("Hello", finish=None), "sse") == {"no_finish_reason": False}
    error = Observation(failure=Failure(FailureKind.ERROR_IN_STREAM, "engine died", 200))
    assert _codes(Subject(error, "candidate", {}), "sse") == {"error_in_answer": True}
    hang = Observation(failure=Failure(FailureKind.IDLE_TIMEOUT, "no token for 30 s"))
    assert _codes(Subject(hang, "candidate", {}), "sse") == {"stalled": True}


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (subject("I am<unk><pad> here"), "reserved_tokens"),
        (subject("?" * 30), "fill"),
        (subject("the▁river▁rises"), "detokenizer_leak"),
        (subject("a\x00b"), "control_characters"),
        (subject(f"def {_LONG_NAME}():"), "endless_identifier"),
        (subject("The关于 на 바 ที่ да", other=Observation(text="The capital.")), "mixed_scripts"),
    ],
)
def test_garbage(one: Subject, code: str) -> None:
    assert _codes(one, "garbage") == {code: True}


@pytest.mark.parametrize(
    "one",
    [
        subject("The token `<unk>` stands for unknown words."),
        subject("<pad> fills the batch.", prompt="What is <pad>?"),
        subject("# Title\n" + "=" * 60 + "\nText."),
        subject("A bar " + "█" * 40 + " done."),
        subject("安静的河流", prompt="请描述一条河"),
        subject("SGVsbG8gd29ybGQhIFRoaXMgaXMgYmFzZTY0" * 5),
    ],
)
def test_look_alikes_of_garbage_are_quiet(one: Subject) -> None:
    assert "garbage" not in families(one)


def test_language() -> None:
    chinese = "相对论认为时间和空间并不是绝对的，而是取决于观察者的运动。"
    assert "language" in families(subject(chinese, prompt="Explain relativity in simple terms."))
    assert "language" not in families(subject(chinese, prompt="Explain relativity in Chinese."))
    assert "language" not in families(subject(chinese, prompt="请解释 relativity"))
    assert "language" not in families(subject("Fine.", prompt="Hello", reasoning=chinese))
    same = Observation(text=chinese, finish_reason="stop")
    assert "language" not in families(subject(chinese, prompt="Explain relativity.", other=same))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"logit_bias": {"5": -200}}, "logit_bias_range"),
        ({"logit_bias": {str(i): 1 for i in range(513)}}, "logit_bias_entries"),
        ({"temperature": 0.0002}, "tiny_temperature"),
    ],
)
def test_request_at_fault_is_never_the_models(body: dict[str, Any], code: str) -> None:
    one = subject("Fine.", body=body)
    assert _codes(one, "request") == {code: False}
    assert faults(one) == set()


def test_maltese_letters_are_no_detokenizer_leak() -> None:
    assert "garbage" not in families(subject("Ġorġ mar Ċipru u Ġanni baqa' hawn.", prompt="Ġorġ?"))
    assert _codes(subject("TheĠriverĠrises"), "garbage") == {"detokenizer_leak": True}


def test_a_loop_of_function_words_is_repetition_only() -> None:
    other = Observation(text="Rain falls on the roof and the garden drinks.", finish_reason="stop")
    one = subject("In the rain\n\n" * 20, finish="length", body={"max_tokens": 99}, other=other)
    assert faults(one) == {"repetition"}
