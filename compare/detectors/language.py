"""Family `language`: the answer is in a script that nobody used or asked for.

Reasoning is left out: a model may think in any language. Greek letters are mathematics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compare.detectors.scripts import letters_by_script
from compare.detectors.subject import Subject
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_NAMES_LANGUAGE = re.compile(
    r"translat|\b(?:in|to|into)\s+(?:chinese|mandarin|japanese|korean|russian|arabic|hebrew|thai|hindi|greek"
    r"|ukrainian|bulgarian|serbian|persian|urdu|bengali|tamil|armenian|georgian)|翻译|翻訳|перевод|перевед"
    r"|\b(?:chinese|japanese|korean|russian|arabic|hebrew|thai|hindi)\b|language|alphabet|multilingual",
    re.IGNORECASE,
)
_MAX_PROMPT_SHARE = 0.02
_CJK = {"HAN", "KANA", "HANGUL"}


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `script_switch`."""
    text = subject.observation.text
    if text.isascii():
        return
    other = subject.other.text if subject.other is not None and subject.other.failure is None else ""
    known = letters_by_script(subject.prompt + "\n" + other)
    if not known or _NAMES_LANGUAGE.search(subject.prompt):
        return
    total = sum(known.values())
    for script, count in letters_by_script(text).items():
        family = _CJK if script in _CJK else {script}
        used = sum(known.get(name, 0) for name in family)
        # One word of another script is a name or a slip; a switch has many, or comes where all scripts mix.
        if script in ("LATIN", "GREEK") or used > _MAX_PROMPT_SHARE * total:
            continue
        if count >= settings.language_min_letters or _is_mixture(text, set(known), settings):
            yield subject.finding(
                Family.LANGUAGE,
                "script_switch",
                f"{count} letters are {script}, which neither prompt nor other side use",
                place="text",
                span=(0, len(text)),
                measured=float(count),
                threshold=float(settings.language_min_letters),
            )
            return


def _is_mixture(text: str, known: set[str], settings: DetectorSettings) -> bool:
    return len((set(letters_by_script(text)) - known) | {"LATIN"}) >= settings.noise_min_scripts
