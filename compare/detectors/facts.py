"""What several detectors ask of a request or an answer, each worked out once a pair and on demand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compare.detectors.json_diagnosis import Diagnosis, diagnose
from compare.detectors.languages import MOST_WORDS, function_counts, language_of, leading
from compare.detectors.odd_pieces import OddCounts, odd_counts
from compare.detectors.scripts import letters_by_script
from compare.detectors.top_lists import TopLists
from ingest.observation import Observation
from ingest.tokens import NO_ID, NO_KEY

# Words of requests whose right answer repeats itself. They silence only what is closed or what the
# other side shows too, never a loop that the candidate alone runs into its limit.
_ASKS_REPETITION = re.compile(
    r"\b(?:repeat(?:ing|ed(?:ly)?)?|repetiti\w+|refrain|chorus|songs?|lyrics|lullaby|poems?|mantra|litany|base64"
    r"|hex ?dumps?|hexadecimal|padding|ascii|banner|verbatim|separator|divider|placeholder|dummy"
    r"|morse|sparkline|lorem ipsum|tongue twister|bar chart|progress bar|echo|zeros?|zeroes"
    r"|\d+\s*times(?!\s*(?:\d|(?:as|more|less|faster|slower|bigger|larger|smaller|higher|lower|per)\b"
    r"|an? (?:day|week|month|year)))|\d+\s*x\s*\d+"
    r"|(?:print|write|output|generate|fill|draw|make|give|create|show|type|say|list|produce|return|need|want)\b"
    r"[^.\n]{0,48}\b(?:ones|grid|matrix|copies|spaces|pattern|dots|dashes|asterisks|stars|underscores|emojis?"
    r"|blanks?|hex|pad|over and over|(?:same|identical) \w+|\d{2,} (?:rows|lines|characters|bytes)))\b"
    r"|重复|复制|填充|[0-9十百]次|遍|répète\w*|wiederhol\w*|repite|повтор\w*",
    re.IGNORECASE,
)
TALKS_OF_TOKENS = re.compile(
    r"\b(?:special|stop|end|eos|bos|unk|pad(?:ding)?|mask|control|reserved|chat|prompt)[ _-]?"
    r"(?:tokens?|templates?|formats?|sequences?)\b|tokeni[sz]|\bchatml\b|\bvocab|\bsentencepiece\b|\bdetokeni"
    r"|\bword-?piece\b|\bbpe\b|\bbyte[- ](?:pair|fallback|level)\b",
    re.IGNORECASE,
)
"""What a text about tokenizers and their reserved tokens says."""
_ALL_SCRIPTS = re.compile(
    r"translat|traduc|tradui|übersetz|перевод|перевед|翻译|翻訳|번역|\blanguages?\b|alphabet|multilingual"
    r"|bilingual|etymolog|\bwords? for\b|\bscripts?\b|\bunicode\b|\btransliterat"
    r"|\bnative name|中文|日语|日本語",
    re.IGNORECASE,
)
_LANGUAGE_NAMES = {
    "HAN": r"chinese|mandarin|cantonese|kanji|hanzi|japanese",
    "KANA": r"japanese|hiragana|katakana",
    "HANGUL": r"korean|hangul",
    "CYRILLIC": r"russian|cyrillic|ukrainian|bulgarian|serbian",
    "ARABIC": r"arabic|persian|farsi|urdu",
    "HEBREW": r"hebrew|yiddish",
    "THAI": r"thai",
    "INDIC": r"hindi|sanskrit|devanagari|bengali|tamil|telugu|marathi",
    "GREEK": r"greek",
    "ARMENIAN": r"armenian",
    "GEORGIAN": r"georgian",
    "LATIN": r"english|french|german|spanish|portuguese|italian|dutch|polish|turkish|swedish|vietnamese"
    r"|indonesian|latin|英文|英语|英語|영어|по-английски|английск\w*|englisch|inglés|anglais",
}
_NAMES_SCRIPT = {
    script: re.compile(rf"(?<![^\W_])(?:{names})(?![^\W_])", re.IGNORECASE)
    for script, names in _LANGUAGE_NAMES.items()
}
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_LETTERS = "".join(chr(code) if chr(code).isalpha() or chr(code) == "'" else " " for code in range(128))
"""A table for `str.translate` that blanks all of ASCII but letters and the apostrophe."""
_MAX_WORDS_TEXT = 65_536


def words_of(text: str) -> list[str]:
    """The words of the first 65,536 characters, in lower case: runs of letters, with an apostrophe inside."""
    text = text[:_MAX_WORDS_TEXT].lower()
    if not text.isascii():
        return _WORD.findall(text)
    pieces = text.translate(_LETTERS).split()
    if "'" not in text:
        return pieces
    words: list[str] = []
    for piece in pieces:
        if "'" in piece:
            words += _WORD.findall(piece)
        else:
            words.append(piece)
    return words


def named_in(text: str) -> frozenset[str]:
    """Scripts of the languages that a text names."""
    return frozenset(name for name, names in _NAMES_SCRIPT.items() if names.search(text))


@dataclass(frozen=True)
class Part:
    """One stretch of generated text. `place` names it for a person: `text`, `reasoning`, ..."""

    place: str
    text: str

    @cached_property
    def pieces(self) -> list[str]:
        """What stands between white space."""
        return self.text.split()


@dataclass(frozen=True)
class RequestFacts:
    """A request's body and what it says."""

    body: dict[str, Any]

    @cached_property
    def messages(self) -> list[tuple[str, str]]:
        """(role, text) of each message, or the prompt of a completion as a user's."""
        return messages_of(self.body)

    @cached_property
    def prompt(self) -> str:
        """Every text of the request, joined by new lines."""
        return "\n".join([text for _, text in self.messages])

    @cached_property
    def last_user_text(self) -> str:
        """The last user message, or the whole prompt of a completion; empty if there is none."""
        return next((text for role, text in reversed(self.messages) if role == "user"), "")

    @cached_property
    def letters(self) -> dict[str, int]:
        """Letters of the prompt by script."""
        return letters_by_script(self.prompt)

    @cached_property
    def language(self) -> str | None:
        """The language of the last user message, None where it cannot be told."""
        return language_of(words_of(self.last_user_text))

    @cached_property
    def asks_repetition(self) -> bool:
        """Whether the prompt names something whose right answer repeats itself."""
        return _ASKS_REPETITION.search(self.prompt) is not None

    @cached_property
    def is_about_languages(self) -> bool:
        """Whether the prompt asks for a translation, or for languages or scripts at large."""
        return _ALL_SCRIPTS.search(self.prompt) is not None

    @cached_property
    def named_scripts(self) -> frozenset[str]:
        """Scripts of the languages that the prompt names."""
        return named_in(self.prompt)

    @cached_property
    def talks_of_tokens(self) -> bool:
        """Whether the prompt is about tokenizers or their reserved tokens."""
        return TALKS_OF_TOKENS.search(self.prompt) is not None


@dataclass(frozen=True)
class AnswerFacts:
    """An observation and what its text and tokens show."""

    observation: Observation

    @cached_property
    def text(self) -> Part:
        """The answer's text, which may be empty."""
        return Part("text", self.observation.text)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """What keeps the text from being JSON."""
        return diagnose(self.observation.text)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The generated texts that are not empty: answer, reasoning, each tool call's arguments."""
        observation = self.observation
        parts = [self.text, Part("reasoning", observation.reasoning)]
        for number, call in enumerate(observation.tool_calls):
            parts.append(Part(f"arguments of tool call {number}", call.arguments))
        return tuple(part for part in parts if part.text)

    @cached_property
    def letters(self) -> dict[str, int]:
        """Letters of the answer's text by script."""
        return letters_by_script(self.observation.text)

    @property
    def main_script(self) -> str:
        """The script of most letters, empty where there are none."""
        return max(self.letters, key=lambda name: self.letters[name], default="")

    @cached_property
    def words(self) -> list[str]:
        """The text's words in lower case, of its first 65,536 characters."""
        return words_of(self.observation.text)

    @cached_property
    def language(self) -> str | None:
        """The language of the text, None where it cannot be told."""
        return leading(self.function_counts, min(len(self.words), MOST_WORDS))

    @cached_property
    def odd_counts(self) -> OddCounts:
        """Of the first pieces between white space: how many look like no word."""
        return odd_counts(self.observation.text)

    @cached_property
    def function_share(self) -> float:
        """The largest share of the words that one language's function words have."""
        looked_at = min(len(self.words), MOST_WORDS)
        return max(self.function_counts.values(), default=0) / looked_at if looked_at else 0.0

    @cached_property
    def function_counts(self) -> dict[str, int]:
        """Function words by language among the first words."""
        return function_counts(self.words[:MOST_WORDS])

    @cached_property
    def lists(self) -> TopLists:
        """Numbers of the tokens' lists of alternatives."""
        return TopLists(self.observation.tokens.columns)

    @cached_property
    def names(self) -> list[object]:
        """What tells the tokens apart: the ids or the keys of all, else each one's own id, bytes or text."""
        tokens, columns = self.observation.tokens, self.observation.tokens.columns
        if (columns.id != NO_ID).all():
            return list(columns.id.tolist())
        if (columns.id == NO_ID).all() and (columns.key != NO_KEY).all():
            return list(columns.key.tolist())
        return [token.id if token.id is not None else token.raw or token.text for token in tokens]

    @property
    def logprobs(self) -> NDArray[np.float64]:
        """(n,) the chosen tokens' logprobs in nats, NaN where the server gave none."""
        return self.observation.tokens.columns.logprob


def messages_of(body: dict[str, Any]) -> list[tuple[str, str]]:
    """(role, text) of each message of a request, then its prompt, if it has one, as a user's."""
    found: list[tuple[str, str]] = []
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, dict):
            role = message.get("role")
            found.append((role if isinstance(role, str) else "", _content_text(message.get("content"))))
    for key in ("prompt", "inputs", "input"):
        if text := _content_text(body.get(key)):
            found.append(("user", text))
    return found


def _content_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts: list[str] = []
    for item in content:
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict) and isinstance(item.get("text"), str):
            texts.append(item["text"])
    return "\n".join(texts)
