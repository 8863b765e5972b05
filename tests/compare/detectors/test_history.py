"""Earlier assistant turns that are faulty, and the tag that keeps such pairs out of the rates."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from compare.comparison import compare_pairs
from compare.detectors.history import HISTORY_FAULTY, is_history_faulty
from compare.result import Comparison, VerdictKind
from tests.compare.detectors.helpers import SETTINGS
from tests.compare.test_comparison import _SETTINGS
from tests.compare.test_verdict import _pair, _said

_LOOP = "Please restart the router and wait for a minute. " * 20


def _body(*turns: tuple[str, str]) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": text} for role, text in turns]}


@pytest.mark.parametrize(
    "turn",
    [
        _LOOP,
        "The capital <unk><unk><unk> is",
        "Le r\ufffdseau est lent.",
        "Step 1: check the cable again. "
        + "".join(f"Step {n}: check the cable again. " for n in range(2, 60)),
    ],
)
def test_a_faulty_assistant_turn_is_seen(turn: str) -> None:
    body = _body(("user", "It does not work."), ("assistant", turn), ("user", "And now?"))
    assert is_history_faulty(body, SETTINGS)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": "none"},
        _body(("user", _LOOP), ("assistant", "Which router is it?"), ("user", "The grey one.")),
        _body(
            ("system", "<unk>"),
            ("user", "What is <unk>?"),
            ("assistant", "<unk> stands for an unknown word."),
        ),
        _body(("user", "Print 300 zeros."), ("assistant", "0 " * 300), ("user", "Thanks!")),
        _body(("user", "Hosts?"), ("assistant", "\n".join(f"- host {n} is up" for n in range(12)))),
    ],
)
def test_sane_histories_are_not(body: dict[str, Any]) -> None:
    assert not is_history_faulty(body, SETTINGS)


def test_content_in_parts_is_read() -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": _LOOP}]}
    assert is_history_faulty({"messages": [message]}, SETTINGS)


def test_the_pair_is_tagged_and_history_is_its_cause() -> None:
    pair = _pair(_said("It is warm."), _said("It is warm. " * 40, "length"))
    mirrored = msgspec.structs.replace(pair.mirrored, body=_body(("assistant", _LOOP), ("user", "Well?")))
    (tagged,) = compare_pairs([msgspec.structs.replace(pair, mirrored=mirrored)], None, _SETTINGS)
    (plain,) = compare_pairs([pair], None, _SETTINGS)
    assert isinstance(tagged, Comparison)
    assert isinstance(plain, Comparison)
    assert (tagged.tags, plain.tags) == ((HISTORY_FAULTY,), ())
    assert tagged.verdict.kind is plain.verdict.kind is VerdictKind.CANDIDATE_WORSE
    assert (tagged.verdict.probable_cause, plain.verdict.probable_cause) == ("history", "sampler")
