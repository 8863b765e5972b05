"""Words that one answer has and the other has not."""

from __future__ import annotations

import re
from itertools import groupby

from rapidfuzz.distance import Indel

from dashboards.shell.marks import Piece

MAX_WORDS = 8_000
"""Words and signs of each answer that are compared: the table behind it has a bit for each pair of them."""

_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|\s+|[^\w\s]")


def word_diff(reference: str, candidate: str, gap: str) -> tuple[list[Piece], list[Piece]]:
    """Each answer with what the other lacks marked: `removed` in the reference's, `added` in the candidate's.

    Chinese, Japanese and Korean are compared by character. Of answers over MAX_WORDS the beginning is, and
    `gap` stands for the rest.
    """
    left, right = WORD.findall(reference), WORD.findall(candidate)
    a, b = left[:MAX_WORDS], right[:MAX_WORDS]
    kinds_a, kinds_b = [""] * len(a), [""] * len(b)
    for step in Indel.opcodes(a, b):
        if step.tag == "delete":
            kinds_a[step.src_start : step.src_end] = ["removed"] * (step.src_end - step.src_start)
        elif step.tag == "insert":
            kinds_b[step.dest_start : step.dest_end] = ["added"] * (step.dest_end - step.dest_start)
    return _pieces(a, kinds_a, len(left), gap), _pieces(b, kinds_b, len(right), gap)


def _pieces(words: list[str], kinds: list[str], count: int, gap: str) -> list[Piece]:
    pieces = [
        Piece("".join(word for word, _ in run), kind)
        for kind, run in groupby(zip(words, kinds, strict=True), key=lambda pair: pair[1])
    ]
    return [*pieces, Piece(f"\n{gap}", "missing")] if count > len(words) else pieces
