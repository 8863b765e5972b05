"""How far two answers agree as texts.

The text of an answer is what the model wrote for its reader, in NFC and without outer white space;
tool calls follow it, one a line, as `name(arguments)`. Reasoning is left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Hashable
from decimal import Decimal, InvalidOperation
from typing import TypeVar

from rapidfuzz.distance import Levenshtein

from compare.metrics.sides import Sides
from compare.result import Scores
from ingest.observation import Observation

EDIT_BLOCK_CHARACTERS = 20_000
"""Longest stretch that is aligned at once: about 10 ms; the cost grows with its square."""

REFUSAL_CHARACTERS = 200
"""A refusal is looked for in this many leading characters: answers that end with an apology are none."""

_LONGEST_NUMBER = 400
_Key = TypeVar("_Key", bound=Hashable)
_NAMES = ("exact_match", "edit_similarity", "numbers_differ", "keys_differ", "refusal_flip", "length_ratio")
_NUMBER = re.compile(
    r"0[xX][0-9a-fA-F]+"
    r"|(?:(?<![\w.)\]])-)?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][+-]?\d{1,9}(?!\w))?"
)
_QUOTED_KEY = re.compile(r'"([^"\\\n]{1,64})"\s*:')
_BARE_KEY = re.compile(r"^[ \t]*(?:[-*][ \t]+)?([^\W\d][\w.-]{0,63})[ \t]*[:=]", re.MULTILINE)
_REFUSAL = re.compile(
    r"\bi(?:'m| am) (?:very |so |really )?sorry,? (?:but )?(?:i|that)\b"
    r"|\bi (?:can(?:'t|not| not)|won't|will not|am unable to|am not able to|must decline)\b"
    r"|\bi'm (?:unable|not able|not allowed|not permitted) to\b"
    r"|\bas an? (?:ai|artificial intelligence|language model)\b"
    r"|^(?:sorry|apologies|unfortunately),? (?:but )?i\b"
    r"|(?:抱歉|对不起|不好意思|很遗憾).{0,12}(?:无法|不能|没办法|不可以)"
    r"|我(?:无法|不能|没有办法|没办法)(?:提供|回答|帮助|协助|满足|完成|执行|参与|为您|为你)"
    r"|作为(?:一个|一名)?(?:人工智能|语言模型|AI)",
    re.IGNORECASE,
)


def answer_text(observation: Observation) -> str:
    """Return the text that is compared."""
    lines = [observation.text.strip()]
    lines += [f"{call.name}({call.arguments})" for call in observation.tool_calls]
    return unicodedata.normalize("NFC", "\n".join(line for line in lines if line)).strip()


def score_text(sides: Sides, texts: tuple[str, str], scores: Scores) -> None:
    """Put the text scores; `texts` are the reference's and the candidate's `answer_text`."""
    if not sides.have_answers:
        for name in _NAMES:
            scores.skip(name, "no_answer")
        return
    a, b = texts
    scores.put("exact_match", float(a == b))
    scores.put("edit_similarity", edit_similarity(a, b))
    scores.put("numbers_differ", float(_differing(numbers_in(a), numbers_in(b))))
    scores.put("keys_differ", float(_differing(Counter(keys_in(a)), Counter(keys_in(b)))))
    scores.put("refusal_flip", float(is_refusal(a) != is_refusal(b)))
    if a:
        scores.put("length_ratio", len(b) / len(a))
    else:
        scores.skip("length_ratio", "empty_text")


def edit_similarity(a: str, b: str) -> float:
    """Return 1 - Levenshtein distance / length of the longer text, in code points; 1 for two empty ones.

    Common ends are free. What is left is aligned whole up to `EDIT_BLOCK_CHARACTERS`. Longer
    texts are cut into the same number of equal blocks on both sides, block against block: time stays
    linear, the distance can only be over-stated, so the similarity is a lower bound.
    """
    longest = max(len(a), len(b))
    if a == b:
        return 1.0
    start = _common_length(a, b)
    a, b = a[start:], b[start:]
    end = _common_length(a[::-1], b[::-1])
    a, b = a[: len(a) - end], b[: len(b) - end]
    blocks = -(-max(len(a), len(b)) // EDIT_BLOCK_CHARACTERS)
    distance = sum(
        Levenshtein.distance(
            a[len(a) * i // blocks : len(a) * (i + 1) // blocks],
            b[len(b) * i // blocks : len(b) * (i + 1) // blocks],
        )
        for i in range(blocks)
    )
    return 1.0 - distance / longest


def numbers_in(text: str) -> Counter[Decimal | str]:
    """Count the numbers of a text by value: 1,000 and 1000.0 are one; hexadecimal ones by their digits.

    Full-width digits count as their plain ones. A minus counts only where no word leads up to it.
    """
    found: Counter[Decimal | str] = Counter()
    for match in _NUMBER.finditer(unicodedata.normalize("NFKC", text)):
        written = match.group().replace(",", "").lower()
        is_text = written.startswith("0x") or len(written) > _LONGEST_NUMBER
        try:
            found[written if is_text else Decimal(written)] += 1
        except InvalidOperation:
            found[written] += 1
    return found


def keys_in(text: str) -> set[str]:
    """Return the names that values are given to: JSON keys, and `name:` or `name =` at a line's start."""
    return set(_QUOTED_KEY.findall(text)) | set(_BARE_KEY.findall(text))


def is_refusal(text: str) -> bool:
    """Return whether the text opens with a refusal, in English or Chinese, by a short word list."""
    return _REFUSAL.search(text[:REFUSAL_CHARACTERS].replace("\u2019", "'")) is not None


def _differing(a: Counter[_Key], b: Counter[_Key]) -> int:
    """Return the least number of entries to change, add or remove to make `a` into `b`."""
    only_a = sum(max(count - b[key], 0) for key, count in a.items())
    only_b = sum(max(count - a[key], 0) for key, count in b.items())
    return max(only_a, only_b)


def _common_length(a: str, b: str) -> int:
    """Return the length of the common start, by bisection: slices compare at memory speed."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
