"""Which writing systems a text uses."""

from __future__ import annotations

import re

# Blocks by script, letters only; one compiled class each keeps the scan in C.
_SCRIPTS = {
    "LATIN": re.compile(r"[A-Za-z\u00c0-\u024f]"),
    "GREEK": re.compile(r"[\u0370-\u03ff]"),
    "CYRILLIC": re.compile(r"[\u0400-\u052f]"),
    "ARMENIAN": re.compile(r"[\u0530-\u058f]"),
    "HEBREW": re.compile(r"[\u0590-\u05ff]"),
    "ARABIC": re.compile(r"[\u0600-\u06ff\u0750-\u077f]"),
    "INDIC": re.compile(r"[\u0900-\u0dff]"),
    "THAI": re.compile(r"[\u0e00-\u0e7f]"),
    "GEORGIAN": re.compile(r"[\u10a0-\u10ff]"),
    "HANGUL": re.compile(r"[\u1100-\u11ff\uac00-\ud7af]"),
    "KANA": re.compile(r"[\u3040-\u30ff]"),
    "HAN": re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]"),
}


def scripts_in(text: str) -> set[str]:
    """The scripts of which `text` holds at least one letter."""
    if text.isascii():
        return {"LATIN"} if _SCRIPTS["LATIN"].search(text) else set()
    return {name for name, pattern in _SCRIPTS.items() if pattern.search(text)}


def letters_by_script(text: str) -> dict[str, int]:
    """How many letters of each script `text` holds, scripts without any left out."""
    counts = {name: len(pattern.findall(text)) for name, pattern in _SCRIPTS.items()}
    return {name: count for name, count in counts.items() if count}
