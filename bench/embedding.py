"""How fast and how exactly answers are embedded. Run: python -m bench.embedding [pairs]

The same pairs of answers, of many kinds and lengths, go through the packaged model with 32-bit weights, with
16-bit ones, and with OpenVINO where it is installed (`pip install openvino`; it is no dependency). It prints
texts a second of one core (processor time, best of two rounds), that over fp32, and the error of the pairs'
cosines against fp32: mean, largest, and of the least best match. Then what a pair costs whose texts are
identical, different or known already, and the processor time of long texts.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from compare.metrics.embedding import CosineResult, TextEncoder
from compare.metrics.embedding_model import FORMS

ROUNDS = 2


def main(count: int) -> None:
    """Print every table."""
    pairs = _pairs(count)
    texts = len({text for pair in pairs for text in pair})
    length = sum(len(text) for pair in pairs for text in pair) / (2 * count)
    print(f"{count} pairs, {texts} distinct texts of {length:.0f} characters on average")
    print(f"{'form':<16}{'texts/s/core':>14}{'x fp32':>8}{'mean error':>12}{'largest':>10}{'of least':>10}")
    exact: list[CosineResult] = []
    slowest = 0.0
    for form in reversed(FORMS):
        if form.startswith("openvino") and find_spec("openvino") is None:
            print("openvino is not installed: left out")
            continue
        encoder = TextEncoder(forms=[form])
        encoder.encode_pairs([("warm", "up")])
        seconds = min(_seconds(encoder, pairs) for _ in range(ROUNDS))
        found = encoder.encode_pairs(pairs)
        exact, slowest = exact or found, slowest or seconds
        error = _errors(exact, found, "cosine")
        least = _errors(exact, found, "least_match")
        print(
            f"{form:<16}{texts / seconds:>14.1f}{slowest / seconds:>8.2f}"
            f"{error.mean():>12.5f}{error.max():>10.5f}{least.max():>10.5f}"
        )
    _costs(pairs)


def _seconds(encoder: TextEncoder, pairs: Sequence[tuple[str, str]]) -> float:
    """Processor seconds of all pairs, nothing known beforehand."""
    _forget(encoder)
    started = time.process_time()
    encoder.encode_pairs(pairs)
    return time.process_time() - started


def _forget(encoder: TextEncoder) -> None:
    encoder._cache.clear()
    encoder._cached_windows = 0


def _errors(exact: Sequence[CosineResult], found: Sequence[CosineResult], name: str) -> Any:
    return np.abs([getattr(a, name) - getattr(b, name) for a, b in zip(exact, found, strict=True)])


def _costs(pairs: list[tuple[str, str]]) -> None:
    encoder = TextEncoder()
    encoder.encode_pairs(pairs[:1])
    print(f"\n{'a pair whose texts are':<44}{'processor ms':>13}")
    rows: list[tuple[str, list[tuple[str, str]]]] = [
        ("identical", [(a, a) for a, _ in pairs]),
        ("different", pairs),
    ]
    for name, asked in rows:
        seconds = min(_seconds(encoder, asked) for _ in range(ROUNDS))
        print(f"{name:<44}{seconds / len(asked) * 1000:>13.3f}")
    encoder.encode_pairs(pairs)
    started = time.process_time()
    encoder.encode_pairs(pairs)
    print(f"{'known already':<44}{(time.process_time() - started) / len(pairs) * 1000:>13.3f}")
    prose = " ".join(_sentence(random.Random(seed)) for seed in range(40_000))
    for size in (10_000, 40_000, 160_000):
        a = prose[:size]
        for name, b in (
            ("alike but for their end", a[: -size // 10] + a[: size // 10]),
            ("different", prose[-size:]),
        ):
            seconds = _seconds(encoder, [(a, b)])
            print(f"{f'{size:,} characters, {name}':<44}{seconds * 1000:>13.0f}")


def _pairs(count: int) -> list[tuple[str, str]]:
    """Pairs as two weights of one model give them: a few words changed, an end changed, another answer."""
    source = random.Random(5)
    pairs = []
    for place in range(count):
        kind = place % 4
        text = _answer(source, kind)
        words = text.split(" ")
        how = place // 4 % 3
        if how == 0:
            for _ in range(1 + len(words) // 12):
                words[source.randrange(len(words))] = source.choice(_WORDS)
        elif how == 1:
            half = len(words) // 2
            words = words[:half] + _answer(source, kind).split(" ")[: len(words) - half]
        else:
            words = _answer(source, (kind + 1) % 4).split(" ")
        pairs.append((text, " ".join(words)))
    return pairs


_WORDS = re.findall(
    r"\w+",
    "server request answer customer order parcel delivery refund account password error timeout module night "
    "morning river garden music kitchen onion butter train station ticket window light paper question reason "
    "number result value table column index model weight token quick slow warm cold",
)


def _sentence(source: random.Random) -> str:
    words = source.choices(_WORDS, k=source.randrange(5, 16))
    return f"The {' '.join(words)}."


def _answer(source: random.Random, kind: int) -> str:
    if kind == 0:
        return " ".join(_sentence(source) for _ in range(source.randrange(1, 30)))
    if kind == 1:
        fields = [
            f'"{source.choice(_WORDS)}": {source.randrange(10_000)}' for _ in range(source.randrange(2, 20))
        ]
        return "{" + ", ".join(fields) + "}"
    if kind == 2:
        lines = [
            f"def {source.choice(_WORDS)}(value):\n    return value * {source.randrange(99)}"
            for _ in range(source.randrange(1, 12))
        ]
        return "\n".join(lines)
    lines = [
        f"2026-11-{source.randrange(1, 30):02} ERROR [{source.choice(_WORDS)}] code={source.randrange(9999)} "
        f"at Cart.java:{source.randrange(900)}"
        for _ in range(source.randrange(1, 15))
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 240)
