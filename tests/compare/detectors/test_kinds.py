"""Kinds of faults and what looks like them, each in other words than the reports that they come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from compare.detectors.subject import Subject
from ingest.observation import Observation, ToolCall
from ingest.tokens import Token, Tokens
from tests.compare.detectors.helpers import faults, found, subject, token

_PROSE = (
    "The ferry leaves the harbour at noon and comes back in the evening. In winter there are fewer trips, "
    "and when the wind is strong the captain may decide to stay in port. Tickets are sold on board, so you "
    "do not need to book; bring warm clothes and something to eat, because the cafe is closed until spring."
)


def _other(text: str, finish: str = "stop", tokens: Iterable[Token] = (), **more: Any) -> Observation:
    return Observation(text=text, finish_reason=finish, tokens=Tokens(tokens), **more)


def _prose_beside(text: str, finish: str = "length") -> Subject:
    return subject(text, prompt="When does the ferry leave?", finish=finish, other=_other(_PROSE))


_SPICES = "".join(f"{n}. {'Aniseed' if n % 2 else 'Anise'}\n" for n in range(1, 60))
_NESTED = "".join("  " * depth + '"child": {\n' for depth in range(1, 30))
_PI = "3141592653589793238462643383279502884197"
_SHUFFLED = ["I should check the file again.", "Let me look at the output.", "Wait, that is not right."]


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (
            subject("Spices: " + _SPICES, finish="length", other=_other("1. Aniseed\n2. Cumin")),
            "counting_loop",
        ),
        (subject("{\n" + _NESTED, finish="length"), "nesting_loop"),
        (
            subject("".join(_SHUFFLED[int(digit) % 3] + " " for digit in _PI), finish="length"),
            "few_lines",
        ),
        (
            subject(
                "".join(f'{{"id": {n}, "name": "user{n}"}},\n' for n in range(60)),
                finish="length",
                other=_other('[{"id": 1, "name": "user1"}]'),
            ),
            "counting_loop",
        ),
        (
            subject('{"a": ' + "".join(" " * (int(digit) + 1) + "\n" for digit in _PI), finish="length"),
            "blank_run",
        ),
        (subject("no " * 3 + "way " * 90, finish="length", prompt="Is 90 C too hot?"), "loop"),
        (subject("", reasoning="Let me think about it once more. " * 9, finish="length"), "loop"),
        (subject("So it iiii" + "i" * 200, finish="length", prompt="Say hi."), "loop"),
        (
            subject(
                "",
                tool_calls=tuple(ToolCall("look", '{"at": "door"}') for _ in range(5)),
                finish="tool_calls",
            ),
            "repeated_calls",
        ),
        (subject("It is it is it is it is it is it is", other=_other("It is noon.")), "loop"),
    ],
)
def test_loops(one: Subject, code: str) -> None:
    assert found(one)[("repetition", code)].is_fault


@pytest.mark.parametrize(
    "one",
    [
        subject("Spices: " + _SPICES, finish="length", other=_other(_SPICES * 2, "length")),
        subject("Spices: " + _SPICES, finish="stop"),
        subject(
            "".join(f"{n} bottles of beer on the wall, " for n in range(99, 60, -1)), prompt="Sing the song."
        ),
        subject("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15", prompt="Count to 500.", finish="length"),
        subject("ha ha ha ha, very funny"),
        subject("| a | b |\n|---|---|\n" + "| yes | no |\n" * 3, finish="length"),
        subject("<div>\n  <div>\n    <div>\n    </div>\n  </div>\n</div>"),
        subject("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", prompt="Encode 30 zero bytes as base64."),
        subject(
            "", tool_calls=tuple(ToolCall("look", f'{{"at": {n}}}') for n in range(5)), finish="tool_calls"
        ),
        subject(
            "Bring: socks, shirts, soap, salt, string, stamps, snacks, sandals, scarf, sweater.",
            finish="length",
        ),
        subject("def f():\n    pass\n\n\ndef g():\n    pass\n\n\ndef h():\n    pass\n", finish="length"),
    ],
)
def test_what_only_looks_like_a_loop(one: Subject) -> None:
    assert "repetition" not in faults(one)


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (subject("The answer is<|im_end|>\n<|im_start|>user"), "reserved_tokens"),
        (subject("Sure.<\uff5cend\u2581of\u2581sentence\uff5c>"), "reserved_tokens"),
        (subject("Fine <0xE2><0x80><0x94> thanks"), "reserved_tokens"),
        (subject("Yes.</s></s>"), "reserved_tokens"),
        (subject("[INST] And now? [/INST] Well."), "reserved_tokens"),
        (subject("Hello\u0120there,\u0120how\u0120are\u0120you?"), "detokenizer_leak"),
        (subject("First line.\u010aSecond line."), "detokenizer_leak"),
        (subject("I\u00e2\u0122\u013bm fine"), "detokenizer_leak"),
        (subject("\u2581Paris\u2581is\u2581in\u2581France"), "detokenizer_leak"),
        (subject("em ##bed ##ding la ##yers"), "detokenizer_leak"),
        (subject("It\x07 is\x01 noon"), "control_characters"),
        (subject("\u2580\u2588\u2591\u2584\u2593\u258c" * 8 + " ok"), "block_elements"),
        (subject("ok " + "\ufffd \ufffd\ufffd" * 12), "replacement_noise"),
        (subject("., ;: !? (. ,; .) ?! ;, .: ,. (;) !, .? ;: ,( ). ,;"), "punctuation"),
        (subject("# / # // # -- # \\ # # / - # # // # -# # / # # -- # # / #"), "punctuation"),
        (subject("getUserName" + "FromRequestContextAndThenReturnValue" * 5), "endless_identifier"),
        (
            _prose_beside(
                "of the and to the of request and the of server to and of the " * 1
                + "to the of and a is of the to"
            ),
            "word_salad",
        ),
        (
            _prose_beside(
                "blåbær Kessel tornado plinth quiver marzipan ostrich lantern gable vortex pumice thimble "
                "sprocket "
                "walnut derrick cobalt"
            ),
            "word_salad",
        ),
        (
            _prose_beside(
                "harbour ,the noon;ferry thexQ crossIng )wind nrthwst qzx winDow;captain "
                ";; ,, board4x )tickets"
            ),
            "odd_words",
        ),
        (
            _prose_beside("Theferryleavestheharbouratnoonandcomesbackintheeveninginwinter", "stop"),
            "lost_spaces",
        ),
    ],
)
def test_noise(one: Subject, code: str) -> None:
    assert found(one)[("garbage", code)].is_fault


@pytest.mark.parametrize(
    "one",
    [
        subject(
            "The end mark is <|im_end|>, the start is <|im_start|>.", prompt="Which special tokens are there?"
        ),
        subject('Use `<pad>` or "<unk>" there.'),
        subject("```python\ntokenizer.pad_token = '<pad>'\n```"),
        subject("It was <s>old</s> new."),
        subject("CPU \u2581\u2582\u2583\u2585\u2587\u2585\u2583\u2581 over the day"),
        subject("\u0120or\u0121a u \u010aensu jgħixu f'Malta."),
        subject(
            "The regex is ^(?:[a-z]+\\.)*[a-z]{2,}$ and (?<!\\d)\\d{3}(?!\\d).", prompt="A regex for domains?"
        ),
        subject("[[1, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]]"),
        subject(
            "\\frac{a}{b} = \\sum_{i=1}^{n} x_i^2, \\quad \\int_0^1 f(x)\\,dx = \\lim_{n\\to\\infty} S_n"
        ),
        subject("\x1b[32mOK\x1b[0m done"),
        subject("5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8 is the digest."),
        subject(
            "https://example.org/a/very/long/path/that/goes/on?with=many"
            "&parameters=in-it&and=so-on-and-so-forth"
        ),
        subject(
            "GitHub, JavaScript, iPhone, PostgreSQL, OpenSSL and MacBook are brand names.",
            other=_other(_PROSE),
        ),
        subject(
            "apples\npears\nplums\ncherries\nquinces\nmedlars\nfigs\ndates\ngrapes\n"
            "lemons\nlimes\nkumquats\nmelons",
            prompt="List some fruit.",
            other=_other(_PROSE),
        ),
        subject(
            "+" * 8 + "[>++++[>++>+++>+++>+<<<<-]>+>+>->>+[<]<-]>>.>---.+++++++..+++.",
            prompt="Hello in Brainfuck",
        ),
        subject("x = 1; y = 2; z = x + y; print(z)"),
        subject("Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft ist lang."),
        subject("Caf\u00e9 na\u00efve \u00c3O S\u00c3O PAULO \u00e2ge \u00ea"),
        subject("Wrap it in <b>bold</b> and <mask id='m'></mask>."),
    ],
)
def test_what_only_looks_like_noise(one: Subject) -> None:
    assert not {"garbage", "utf8"} & faults(one)


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (subject("I\u00e2\u20ac\u2122m fine, na\u00c3\u00afve."), "mojibake"),
        (subject("Price: 5\u00c2\u00b0C outside"), "mojibake"),
        (
            subject("", tool_calls=(ToolCall("say", '{"text": "caf\\ufffd"}'),), finish="tool_calls"),
            "replacement_character",
        ),
        (
            subject("", tool_calls=(ToolCall("say", '{"text": "\\ud83d"}'),), finish="tool_calls"),
            "lone_surrogate",
        ),
    ],
)
def test_broken_characters(one: Subject, code: str) -> None:
    assert found(one)[("utf8", code)].is_fault


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (
            subject(
                "Der Zug f\u00e4hrt um acht Uhr und die Leute warten auf dem Bahnsteig, "
                "weil es nicht regnet.",
                prompt="When does the train leave and where do the people wait for it?",
            ),
            "language_switch",
        ),
        (
            subject(
                "The train leaves at eight and the people wait there. El tren sale a las ocho y la gente "
                "espera en el "
                "andén de la estación porque no llueve.",
                prompt="When does the train leave and where is the platform?",
                other=_other(
                    "The train leaves at eight, and the people wait on the platform of the station."
                ),
            ),
            "language_switch",
        ),
        (
            subject(
                "We will \u7acb\u5373 check the order and call you.",
                prompt="Write a reply.",
                other=_other("We will check the order at once and call you."),
            ),
            "script_slip",
        ),
        (subject("The capital\u7684city is Oslo.", prompt="Which is the capital of Norway?"), "script_slip"),
        (
            subject(
                "Theory of relativity says that time and space are not absolute but depend "
                "on the motion of the observer.",
                prompt="请用简单的话解释一下相对论是什么。",
            ),
            "script_left",
        ),
        (
            subject(
                "Поезд идёт в восемь часов.",
                prompt="Answer in English: when does the train leave?",
            ),
            "script_switch",
        ),
        (
            subject("会議は明日の午後にあります。場所は三階です。", prompt="请告诉我会议的时间和地点。"),
            "script_switch",
        ),
        (
            subject(
                "会议安排在明天下午三点，地点在三楼的大会议室，请准时参加并带好相关材料。",
                prompt="会議はいつ、どこでありますか。おしえてください。",
            ),
            "script_left",
        ),
    ],
)
def test_language_switches(one: Subject, code: str) -> None:
    assert found(one)[("language", code)].is_fault


@pytest.mark.parametrize(
    "one",
    [
        subject(
            "In winter the tyre ain't no rain, but a tyre ain't no rain either. A tyre's no good.",
            prompt="Write a four-line poem about the tyre and the rain that falls on it.",
        ),
        subject("東京タワーは高いです。", prompt="东京塔高吗？用日本語回答。"),
        subject("東京鉄塔", prompt="とうきょうタワーはどこにありますか。"),
        subject(
            "Bonjour et bienvenue dans la ville, nous sommes heureux de vous voir et de vous aider.",
            prompt="Write a welcome in French for the guests of the hotel and the town.",
        ),
        subject(
            "The city is called T\u014dky\u014d (\u6771\u4eac) and means 'eastern capital'.",
            prompt="What does Tokyo mean?",
        ),
        subject(
            "\u6211\u4eec\u4f7f\u7528API\u548cPython SDK\u3002", prompt="\u7528\u4ec0\u4e48\u5f00\u53d1\uff1f"
        ),
        subject("\u03b1 + \u03b2 = \u03b3 holds for every angle", prompt="What about the angles?"),
        subject(
            "SELECT a FROM b WHERE c IN (1, 2)",
            prompt="请写一个查询语句，找出所有订单。",
        ),
        subject(
            "Carpe diem, et cetera, de facto, a priori and in vino veritas are Latin.",
            prompt="Which phrases do you know?",
        ),
        subject(
            "La casa e il giardino sono della signora che abita in via Roma con la figlia.",
            prompt="ciao",
            other=_other("La casa e il giardino sono della signora di via Roma."),
        ),
    ],
)
def test_what_only_looks_like_a_switch(one: Subject) -> None:
    assert "language" not in faults(one)


def _walk(*logprobs: float) -> tuple[Token, ...]:
    return tuple(token(f" w{index}", logprob) for index, logprob in enumerate(logprobs))


def test_a_slide_of_the_mean_logprob() -> None:
    sinking = _walk(*[-0.4] * 40, *[-4.2] * 32)
    steady = _walk(*[-0.4] * 72)
    text = "".join(one.text for one in sinking)
    finding = found(subject(text, tokens=sinking, other=_other(text, tokens=steady)))[("logits", "slide")]
    assert (finding.start, finding.end) == (40, 72)
    assert finding.measured == pytest.approx(-4.2)
    assert ("logits", "slide") not in found(subject(text, tokens=sinking, other=_other(text, tokens=sinking)))
    assert ("logits", "slide") not in found(
        subject(text, tokens=sinking, body={"response_format": {"type": "json_object"}})
    )
    assert ("logits", "slide") not in found(subject(text, tokens=steady))


def test_a_collapse_needs_repetition_or_excess() -> None:
    sure = tuple(token(f" t{index}", -1e-7, -17.0, -18.0) for index in range(40))
    unsure = tuple(token(f" t{index}", -0.7, -0.8, -3.0) for index in range(40))
    looping = tuple(token((" a", " b")[index % 2], -1e-7, -17.0, -18.0) for index in range(40))
    copied = "".join(one.text for one in sure)
    assert ("logits", "collapse") not in found(subject(copied, tokens=sure))
    assert ("logits", "collapse") not in found(
        subject(copied, tokens=sure, other=_other(copied, tokens=sure))
    )
    assert ("logits", "collapse") in found(subject(" a b" * 20, tokens=looping, finish="length"))
    # The same tokens by bytes, so the same context; the other side had a choice.
    tokens = {
        name: tuple(Token(t.text, t.logprob, t.text.encode(), None, t.top, 3) for t in side)
        for name, side in (("sure", sure), ("unsure", unsure))
    }
    excess = subject(copied, tokens=tokens["sure"], other=_other(copied, tokens=tokens["unsure"]))
    assert found(excess)[("logits", "collapse")].is_fault


def test_alternatives_that_are_all_alike() -> None:
    even = tuple(token(f" {index}", -3.0, -3.0, -3.0, -3.0) for index in range(3))
    assert ("logits", "even") in found(subject(" 0 1 2", tokens=even))
    tied = tuple(token(f" {index}", -0.7, -0.7) for index in range(3))
    assert "logits" not in faults(subject(" 0 1 2", tokens=tied))
