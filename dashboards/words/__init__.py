"""The explorer's words, in English and Simplified Chinese.

One module a page, each with `TEXTS`: key -> (English, Chinese). A text is found by `page.key`; `{name}` in
it is filled in. Metrics, verdicts, families and codes keep the names that SQL has.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Literal

import dashboards.words.alerts as alerts
import dashboards.words.drift as drift
import dashboards.words.golden as golden
import dashboards.words.operations as operations
import dashboards.words.overview as overview
import dashboards.words.pair as pair
import dashboards.words.pairs as pairs
import dashboards.words.shell as shell
import dashboards.words.sql_box as sql_box

Language = Literal["en", "zh"]
LANGUAGES: dict[Language, str] = {"en": "English", "zh": "简体中文"}

_MODULES: tuple[ModuleType, ...] = (alerts, drift, golden, operations, overview, pair, pairs, shell, sql_box)
TEXTS: dict[str, tuple[str, str]] = {
    f"{module.__name__.rpartition('.')[2]}.{key}": pair_of_texts
    for module in _MODULES
    for key, pair_of_texts in module.TEXTS.items()
}


class Words:
    """`say("pairs.title")`: the text in one language."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._column = list(LANGUAGES).index(language)

    def __call__(self, key: str, **values: Any) -> str:
        """The text with the values filled in. Raises KeyError for an unknown key or a missing value."""
        text = TEXTS[key][self._column]
        return text.format(**values) if values else text


def language_of(locale: str | None) -> Language:
    """The language for a browser's locale such as `zh-CN`; English for what is not spoken here."""
    return "zh" if (locale or "").lower().startswith("zh") else "en"
