from __future__ import annotations

import pytest

from compare.detectors.repetition import runs_away
from ingest.observation import Observation
from ingest.tokens import Token
from tests.compare.detectors.helpers import SETTINGS, families, found, subject

_TABLE = "| host | up |\n|------|----|\n" + "".join(f"| 10.0.0.{i} | yes |\n" for i in range(1, 40))
_REFRAIN = "".join(
    f"Verse number {n} tells of the sea.\nGently down the bay.\n" for n in ("one", "two", "three")
)


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        ("I will go to the store. " * 8, "length"),
        ("So: " + "na " * 30, "length"),
        ("The answer is 1" + "0" * 80, "length"),
        ('{"items": [' + '"gamma", ' * 12, "length"),
        ('{"a": 1,' + "\n" * 200, "length"),
        ("Yes.\n" + "\t" * 100, None),
        ("and so on the the the the the the the the the the", "stop"),
        ("Sure" + "!" * 60, "stop"),
        ("Text first. " + "This is a loop inside. " * 20 + "And then it went on to its end.", "stop"),
    ],
)
def test_a_loop_is_a_fault(text: str, finish: str | None) -> None:
    one = subject(text, finish=finish)
    assert any(finding.is_fault for (family, _), finding in found(one).items() if family == "repetition")
    assert runs_away(one, SETTINGS)


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        (_TABLE, "stop"),
        (_TABLE[:300], "length"),
        (_REFRAIN, "stop"),
        ("Heading\n" + "-" * 70 + "\nText.\n" + "=" * 70 + "\nMore.", "stop"),
        ("1. Alder\n2. Birch\n3. Cedar\n4. Elm\n5. Fir\n6. Hazel\n", "stop"),
        ("".join(f"{i}. Item {i}\n" for i in range(1, 60)), "stop"),
        ("[" + ", ".join(["0"] * 200) + "]", "stop"),
        ("The price is 1,000,000,000,000,000,000 marks.", "stop"),
        ("if a:\n    if b:\n        f(g(h(i(j(k(l(m(1))))))))\n" + "}\n" * 6, "stop"),
        ("  /\\  \n /  \\ \n/____\\\n" * 3, "stop"),
        ("- pass\n- pass\n- pass\n- fail\n- pass\n", "stop"),
        ("no no no no", "stop"),
        ("🎉🎉🎉🎉🎉🎉", "stop"),
        ("[████████████████████████████████░░░░] 90%", "stop"),
    ],
)
def test_what_honest_text_repeats_is_quiet(text: str, finish: str) -> None:
    assert "repetition" not in families(subject(text, finish=finish))


@pytest.mark.parametrize("period", [1, 3, 7, 50, 405, 512])
def test_periods_in_tokens_up_to_512(period: int) -> None:
    unit = [f" w{i}" for i in range(period)]
    texts = [f" x{i}" for i in range(20)] + unit * (20 if period < 10 else 3)
    tokens = tuple(Token(text, -0.1, id=hash(text)) for text in texts)
    # The text is withheld, as where a server's detokenizer lost it: only tokens can tell.
    one = subject("", finish="length", tokens=tokens, completion_tokens=len(texts))
    finding = found(one)[("repetition", "token_loop")]
    assert (finding.unit, finding.start, finding.end) == ("tokens", 20, len(texts))


def test_the_field_rule_needs_three_blocks_of_four_tokens() -> None:
    def tokens(copies: int) -> tuple[Token, ...]:
        return tuple(
            Token(text, -0.1, id=i % 4) for i, text in enumerate([" I", " am", " not", " sure"] * copies)
        )

    head = tuple(Token(f" h{i}", -0.1, id=100 + i) for i in range(5))
    one = subject("", finish="length", tokens=head + tokens(3), completion_tokens=17)
    assert ("repetition", "token_loop") in found(one)
    two = subject("", finish="length", tokens=head + tokens(2), completion_tokens=13)
    assert "repetition" not in families(two)
    closed = subject("", finish="stop", tokens=head + tokens(3), completion_tokens=17)
    assert "repetition" not in families(closed)


def test_zeros_that_were_asked_for_are_quiet() -> None:
    zeros = "0 0 0 0 0 0 0 0\n" * 8
    asked = "Print an 8x8 grid of zeros."
    assert "repetition" not in families(subject(zeros, prompt=asked))
    same = Observation(text=zeros, finish_reason="length")
    assert "repetition" not in families(subject(zeros, prompt=asked, finish="length", other=same))


def test_an_asked_for_repetition_that_only_this_side_cannot_end_is_a_loop() -> None:
    other = Observation(text="0 0 0 0\n" * 4, finish_reason="stop")
    one = subject("zero zero " * 60, prompt="Repeat zero four times", finish="length", other=other)
    assert "repetition" in families(one)


def test_a_prompt_that_holds_the_loop_excuses_both_sides_only_together() -> None:
    prompt = "Continue: " + "tick tock " * 20
    looping = Observation(text="tick tock " * 50, finish_reason="length")
    assert "repetition" not in families(subject(looping.text, prompt=prompt, finish="length", other=looping))
    ended = Observation(text="tick tock, and it stopped.", finish_reason="stop")
    assert "repetition" in families(subject(looping.text, prompt=prompt, finish="length", other=ended))


def test_a_loop_that_both_sides_show_unasked_is_found_on_this_side_too() -> None:
    text = "Step 1: 12" + "0" * 60
    assert "repetition" in families(subject(text, finish="length", other=Observation(text=text)))


def test_the_span_is_the_loop() -> None:
    head = "A fine beginning of the answer:\n"
    finding = found(subject(head + "over and over " * 10, finish="length"))[("repetition", "loop")]
    text = head + "over and over " * 10
    assert text[finding.start : finding.end].startswith("over and over over and over")
    assert finding.end == len(text)
    assert finding.measured == 140.0


def test_a_loop_in_reasoning_has_no_span_in_the_text() -> None:
    finding = found(subject("Fine.", reasoning="Wait, let me check. " * 40, finish="length"))[
        ("repetition", "loop")
    ]
    assert finding.unit == "none"
    assert "reasoning" in finding.message


def test_counting_lines_are_a_loop_only_if_they_never_end() -> None:
    text = "".join(f"Wait, let me verify step {i} once more before sending.\n" for i in range(1, 13))
    assert ("repetition", "counting_loop") in found(subject(text, finish="length"))
    assert "repetition" not in families(subject(text, finish="stop"))
    records = "".join(f'{{"case_id": {i}, "name": "a case of many", "ok": true}}, ' for i in range(1, 30))
    assert "repetition" not in families(subject("[" + records, finish="length"))


def test_a_loop_that_the_server_stopped() -> None:
    finding = found(subject("It goes", finish="repetition"))[("repetition", "stopped_loop")]
    assert finding.is_fault
    assert "repetition" not in families(subject("It goes"))
