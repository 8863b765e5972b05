"""Streams that say nothing or too much at once, and numbers that are none, each as bytes on the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compare.detect import detect
from compare.detectors.subject import Subject
from ingest.answer import read_answer
from tests.compare.detectors.helpers import SETTINGS

_ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "Well?"}], "max_tokens": 1}
_DONE = "data: [DONE]\n\n"


def _told(body: str, content_type: str = "text/event-stream") -> dict[str, bool]:
    """Whether each finding is a fault, by family and code."""
    seen = read_answer(body.encode(), content_type=content_type)
    subject = Subject(seen, "candidate", _ASKED)
    return {f"{one.family}/{one.code}": one.is_fault for one in detect(subject, SETTINGS)}


def _event(text: str | None = None, finish: str | None = None) -> str:
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})


def _stream(*events: str) -> str:
    return "".join(f"data: {event}\n\n" for event in (*events, _event(finish="stop"))) + _DONE


@pytest.mark.parametrize(
    "body",
    [
        _DONE,
        "data:[DONE]\r\n\r\n",
        ": ping\n\n: ping\n\n" + _DONE,
        "data: {}\n\n" + _DONE,
        'event: ping\ndata: {"type": "ping"}\n\n' + _DONE,
        'data: {"choices": []}\n\n' + _DONE,
        'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}\n\n' + _DONE,
        "data: null\n\n" + _DONE,
        f"data: {_event('a')}{_event('b')[:40]}\n\n{_DONE}",
        "data: ok\n\n" + _DONE,
    ],
)
def test_a_stream_that_holds_no_answer_is_a_fault_of_the_transport(body: str) -> None:
    assert _told(body)["sse/unreadable_stream"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (_stream(_event("Sou") + _event("p")), "Soup"),
        (_stream(_event("So") + " " + _event("u") + "\t" + _event("p")), "Soup"),
        (_stream(_event("Sou"), _event("p") + _event()), "Soup"),
        (f"data: {_event('Soup')}{_event(finish='stop')}\n\n{_DONE}", "Soup"),
    ],
)
def test_objects_in_one_data_line_are_all_read_and_said(body: str, text: str) -> None:
    assert read_answer(body.encode()).text == text
    assert _told(body) == {"sse/broken_events": False}


@pytest.mark.parametrize(
    "body",
    [
        _stream(_event("Two sets: {}{} and [][].")),
        _stream(_event("a}{b, then"), _event(" }{ again.")),
        _stream(_event("The mark is data: [DONE].")),
        ": ping\n\n" + _stream(_event("Soup.")),
        _stream(_event(""), _event("Soup.")),
        _stream(f"[{_event('Soup')}, {_event('.')}]"),
        _stream(_event("Soup.")).replace('"choices"', '"usage": null, "choices"'),
        "".join(f"{line}\n" for line in (_event("Soup."), _event(finish="stop"))),
    ],
)
def test_honest_streams(body: str) -> None:
    assert _told(body) == {}


def test_a_role_and_no_word_is_an_empty_answer_not_a_broken_stream() -> None:
    body = _stream(json.dumps({"choices": [{"index": 0, "delta": {"role": "assistant"}}]}))
    assert _told(body) == {"empty/empty": True}


def _answer(logprob: str, other: str = "-2.5", text: str = "So") -> str:
    top = f'[{{"token": "{text}", "logprob": {logprob}}}, {{"token": "No", "logprob": {other}}}]'
    entry = f'{{"token": "{text}", "logprob": {logprob}, "top_logprobs": {top}}}'
    return (
        f'{{"choices": [{{"index": 0, "message": {{"content": "{text}"}}, "finish_reason": "length", '
        f'"logprobs": {{"content": [{entry}]}}}}]}}'
    )


@pytest.mark.parametrize(
    ("logprob", "other"),
    [
        ("Infinity", "NaN"),
        ("Infinity", "-2.5"),
        ("NaN", "NaN"),
        ("-0.3", "NaN"),
        ("-0.3", "Infinity"),
        ('"Infinity"', "-2.5"),
        ('"inf"', '"nan"'),
        ('"+inf"', "-Infinity"),
        ("1e999", "-2.5"),
        ("Infinity", "-Infinity"),
    ],
)
def test_plus_infinity_and_nan_are_broken_logits(logprob: str, other: str) -> None:
    assert _told(_answer(logprob, other), "application/json")["logits/nan"]


def test_they_are_found_in_streams_and_in_the_legacy_shape() -> None:
    token = '{"token": "So", "logprob": Infinity, "top_logprobs": []}'
    choice = f'{{"index": 0, "delta": {{"content": "So"}}, "logprobs": {{"content": [{token}]}}}}'
    assert _told(_stream(f'{{"choices": [{choice}]}}'))["logits/nan"]
    legacy = '{"tokens": ["a", "b"], "token_logprobs": [-0.1, Infinity], "top_logprobs": null}'
    choice = f'{{"index": 0, "text": "ab", "finish_reason": "length", "logprobs": {legacy}}}'
    assert _told(f'{{"object": "text_completion", "choices": [{choice}]}}', "application/json")["logits/nan"]


@pytest.mark.parametrize(
    "body",
    [
        _answer("-0.1"),
        _answer("0.0", "-Infinity"),
        _answer("0.0", '"-inf"'),
        _answer("0.0", "-1e999"),
        _answer("0.0", "-9999.0"),
        _answer("1e-7", "-20.0"),
        _answer("0.9", "0.1"),  # probabilities
        _answer("12.5", "-Infinity"),  # logits before the softmax
        _answer("-0.1", text="Infinity"),
        _answer("-0.1", text="NaN"),
        _answer("-0.1").replace('"choices"', '"speed": Infinity, "choices"'),
    ],
)
def test_what_is_finite_or_minus_infinity_is_not(body: str) -> None:
    assert not [name for name in _told(body, "application/json") if name.startswith("logits/")]
