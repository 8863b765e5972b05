"""Kinds and languages of requests."""

from __future__ import annotations

from typing import Any

import pytest

from compare.slices import kind_of, language_of_request

_USER = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"messages": _USER}, "chat"),
        ({"prompt": "Once"}, "completion"),
        (
            {"messages": _USER, "tools": [{"type": "function"}], "response_format": {"type": "json_object"}},
            "tools",
        ),
        ({"messages": _USER, "response_format": {"type": "json_object"}}, "json"),
        ({"prompt": "x", "guided_json": {"type": "object"}}, "json"),
    ],
)
def test_kinds(body: dict[str, Any], kind: str) -> None:
    assert kind_of(body) == kind


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Please tell me what the weather will be like in the north of the country this week.", "en"),
        ("Bitte sage mir, wie das Wetter in der nächsten Woche im Norden des Landes wird.", "de"),
        ("请用三句话介绍一下北京的历史。", "zh"),
        ("東京の天気はどうですか。明日は雨が降りますか。", "ja"),
        ("내일 서울 날씨가 어떤지 알려 주세요.", "ko"),
        ("Объясни, как работает двигатель, и что в нём может сломаться.", "ru"),
        ("ما هي عاصمة فرنسا؟", "ar"),
        ("x = 1", ""),
        ("", ""),
    ],
)
def test_languages(text: str, language: str) -> None:
    assert language_of_request({"messages": [{"role": "user", "content": text}]}) == language
