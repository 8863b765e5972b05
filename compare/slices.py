"""What a request is, for looking at parts of the traffic: its kind and its language."""

from __future__ import annotations

from typing import Any

from compare.detectors.facts import RequestFacts
from ingest.request import expects_json

_SCRIPT_LANGUAGES = {
    "HAN": "zh",
    "KANA": "ja",
    "HANGUL": "ko",
    "ARABIC": "ar",
    "HEBREW": "he",
    "THAI": "th",
    "INDIC": "hi",
    "GREEK": "el",
    "ARMENIAN": "hy",
    "GEORGIAN": "ka",
}
"""The language that most texts of a script are in; Japanese and Korean also write Chinese characters."""

_LEAST_SHARE = 0.3
"""From this share of the letters on, a script other than Latin and Cyrillic names the language."""


def kind_of(body: dict[str, Any]) -> str:
    """Return `tools`, `json`, `chat` or `completion`: what the client asked for, the first that fits."""
    if body.get("tools") or body.get("functions"):
        return "tools"
    if expects_json(body).kind is not None:
        return "json"
    return "chat" if "messages" in body else "completion"


def language_of_request(body: dict[str, Any]) -> str:
    """Return the ISO 639-1 code of the request's language, empty where it cannot be told.

    Languages of the Latin and Cyrillic scripts by their function words, others by their script.
    """
    facts = RequestFacts(body)
    letters = facts.letters
    total = sum(letters.values())
    for script in ("KANA", "HANGUL", "HAN"):
        # A few kana make a text Japanese, however many Chinese characters it has.
        least = 0.1 if script != "HAN" else _LEAST_SHARE
        if total and letters.get(script, 0) >= least * total:
            return _SCRIPT_LANGUAGES[script]
    for script, language in _SCRIPT_LANGUAGES.items():
        if total and letters.get(script, 0) >= _LEAST_SHARE * total:
            return language
    return facts.language or ""
