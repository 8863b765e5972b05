"""Answers that repeat their prompt on request: the prompt's text and tokens are nobody's choices."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compare.detect import detect
from compare.detectors.subject import Subject
from compare.result import Finding
from ingest.answer import read_answer
from ingest.observation import Observation
from ingest.request import expects_json
from tests.compare.detectors.helpers import SETTINGS

_PROMPT = "Zebra quartz ferries leave at"
_PROMPT_TOKENS = ["Zebra", " quartz", " ferries", " leave", " at"]
_UNLIKELY = [None, -14.0, -12.5, -9.0, -11.0]
"""Nobody would have chosen such a prompt: on average a good deal under -8 nats."""


def _read(
    tokens: list[str],
    logprobs: list[float | None],
    *,
    used: int,
    text: str | None = None,
    prompt_tokens: int = 5,
    finish: str = "length",
) -> Observation:
    """A vLLM answer to a completion; where a token is unlikely, a likelier one is listed beside it."""
    top = [
        None if value is None else {token: value, " the": -0.4 if value < -1 else -5.0}
        for token, value in zip(tokens, logprobs, strict=True)
    ]
    shown = "".join(tokens) if text is None else text
    body = {
        "object": "text_completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "text": shown,
                "finish_reason": finish,
                "logprobs": {"tokens": tokens, "token_logprobs": logprobs, "top_logprobs": top},
            }
        ],
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": used},
    }
    return read_answer(json.dumps(body).encode(), asked=1)


def _found(
    observation: Observation, body: dict[str, Any], other: Observation | None = None
) -> dict[str, Finding]:
    one = Subject(observation, "candidate", body, other, expects_json(body))
    return {f"{finding.family}/{finding.code}": finding for finding in detect(one, SETTINGS)}


_BODY: dict[str, Any] = {"prompt": _PROMPT, "echo": True, "logprobs": 1, "temperature": 0, "max_tokens": 2}


@pytest.mark.parametrize("has_other", [False, True])
def test_unlikely_prompt_tokens_are_no_finding(has_other: bool) -> None:
    answer = _read([*_PROMPT_TOKENS, " noon", "."], [*_UNLIKELY, -0.1, -0.2], used=2)
    assert [token.logprob for token in answer.tokens] == [*_UNLIKELY, -0.1, -0.2]
    assert _found(answer, _BODY, answer if has_other else None) == {}


def test_a_begin_mark_before_the_prompt_belongs_to_it() -> None:
    answer = _read(
        ["<s>", *_PROMPT_TOKENS, " noon", "."],
        [None, -9.5, *_UNLIKELY[1:], -0.1, -0.2],
        used=2,
        text=_PROMPT + " noon.",
        prompt_tokens=6,
    )
    assert _found(answer, _BODY) == {}


def test_a_prompt_of_token_ids_is_told_by_the_counts() -> None:
    answer = _read([*_PROMPT_TOKENS, " noon", "."], [*_UNLIKELY, -0.1, -0.2], used=2)
    assert _found(answer, {**_BODY, "prompt": [5, 17, 99, 4, 8]}) == {}


def test_without_usage_the_prompts_text_tells() -> None:
    whole = _read([*_PROMPT_TOKENS, " noon", "."], [*_UNLIKELY, -0.1, -0.2], used=2)
    body = json.loads(json.dumps(_BODY))
    uncounted = Observation(text=whole.text, tokens=whole.tokens, finish_reason="length")
    assert _found(uncounted, body) == {}


def test_a_greedy_choice_against_a_likelier_token_is_told_at_its_own_place() -> None:
    answer = _read([*_PROMPT_TOKENS, " noon", "."], [*_UNLIKELY, -0.1, -3.0], used=2)
    finding = _found(answer, _BODY)["logprobs_format/not_argmax"]
    assert (finding.start, finding.end) == (6, 7)


def test_a_loop_in_the_prompt_is_not_the_answers_but_one_in_the_answer_is() -> None:
    prompt = "Say it once more. " * 8
    calm = Observation(text=prompt + "No.", finish_reason="stop")
    assert _found(calm, {"prompt": prompt, "echo": True}) == {}
    looping = Observation(text="Go: " + "and then we went " * 9, finish_reason="length")
    finding = _found(looping, {"prompt": "Go: ", "echo": True})["repetition/loop"]
    assert finding.start >= len("Go: ")
    assert finding.end == len(looping.text)


def test_a_prompt_that_ends_in_mid_air_or_holds_reserved_tokens_is_not_judged() -> None:
    prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    answer = Observation(text=prompt + "Hello there!", finish_reason="stop")
    assert _found(answer, {"prompt": prompt, "echo": True}) == {}
    leaked = Observation(text=prompt + "Hello there!<|endoftext|>", finish_reason="stop")
    assert "garbage/reserved_tokens" in _found(leaked, {"prompt": prompt, "echo": True})


def test_json_is_sought_behind_the_prompt() -> None:
    body = {"prompt": "As JSON: ", "echo": True, "response_format": {"type": "json_object"}}
    assert _found(Observation(text='As JSON: {"a": 1}', finish_reason="stop"), body) == {}
    broken = _found(Observation(text='As JSON: {"a": 1,}', finish_reason="stop"), body)
    assert broken["json/trailing_comma"].start == len('As JSON: {"a": 1')


def test_an_echo_with_nothing_behind_it_is_an_empty_answer() -> None:
    assert "empty/empty" in _found(Observation(text=_PROMPT, finish_reason="stop"), _BODY)


def test_a_prompt_that_is_only_scored_is_no_answer_at_all() -> None:
    answer = _read(_PROMPT_TOKENS, _UNLIKELY, used=0)
    assert _found(answer, {**_BODY, "max_tokens": 0}) == {}


def test_an_answer_that_repeats_the_prompt_unasked_is_still_an_echo() -> None:
    asked = "Which ferry is the fastest of all?"
    body = {"messages": [{"role": "user", "content": asked}]}
    assert "empty/echo" in _found(Observation(text=asked, finish_reason="stop"), body)


def test_full_text_of_tgi_and_a_continued_message_of_vllm() -> None:
    tgi = {"inputs": "Once upon", "parameters": {"return_full_text": True}}
    assert _found(Observation(text="Once upon a time.", finish_reason="eos_token"), tgi) == {}
    messages = [{"role": "user", "content": "Go on"}, {"role": "assistant", "content": "Well (as we said"}]
    vllm = {"messages": messages, "echo": True, "continue_final_message": True}
    assert _found(Observation(text="Well (as we said) it rains.", finish_reason="stop"), vllm) == {}


def test_prompt_tokens_that_do_not_spell_the_prompt_are_still_told() -> None:
    odd = ["Zebra", "\n quartz", "\n\n ferries", "\n\n\n leave", " at", " noon"]
    answer = _read(odd, [*_UNLIKELY, -0.1], used=1, text=_PROMPT + " noon")
    assert set(_found(answer, {**_BODY, "max_tokens": 1})) == {"logprobs_format/misspelt"}


def test_the_other_sides_echo_is_taken_off_too() -> None:
    own = Observation(text=_PROMPT + " noon on every day of the week.", finish_reason="stop")
    other = Observation(text=_PROMPT + " one.", finish_reason="stop")
    assert _found(own, _BODY, other) == {}
