from __future__ import annotations

import dataclasses
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from compare.metrics.embedding import MAX_CHARACTERS, MAX_WINDOWS, CosineResult, TextEncoder
from compare.metrics.embedding_model import FORMS, LARGEST_ERROR, Window, model_folder
from ingest.errors import SettingsError

GARDEN = [
    "garden",
    "river",
    "stone",
    "flower",
    "bird",
    "summer",
    "water",
    "grass",
    "apple",
    "winter",
    "tree",
    "rain",
    "cloud",
    "field",
    "horse",
    "bread",
    "milk",
    "salt",
    "night",
    "moon",
]
OFFICE = [
    "paper",
    "desk",
    "letter",
    "number",
    "report",
    "price",
    "order",
    "phone",
    "table",
    "meeting",
    "clock",
    "window",
    "office",
    "money",
]
SHORT = [
    ("The cat sat on the mat.", "A cat was sitting on a mat."),
    ("The answer is 41.", "The answer is 42."),
    ("Trains leave at noon.", "Simmer the onions in butter until soft."),
    ('{"code": 1021, "level": "error"}', '{"code": 7, "level": "info"}'),
    ("NullPointerException at Cart.java:118", "The cart total was null."),
]


@pytest.fixture(scope="session")
def direct() -> Any:
    """sentence-transformers itself, in 32 bits, as the independent judge."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(model_folder("packaged")), device="cpu", local_files_only=True)


def test_short_texts_against_the_library_called_directly(encoder: TextEncoder, direct: Any) -> None:
    results = encoder.encode_pairs(SHORT)
    for (a, b), result in zip(SHORT, results, strict=True):
        left, right = direct.encode([a, b], show_progress_bar=False)
        expected = float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))
        assert result.cosine == pytest.approx(expected, abs=LARGEST_ERROR)
        assert result.least_match == pytest.approx(expected, abs=LARGEST_ERROR)
    assert encoder.form in FORMS


def test_the_library_alone_is_blind_to_the_end_of_a_long_text(encoder: TextEncoder, direct: Any) -> None:
    words = [f"item{i % 97} report" for i in range(1000)]
    ending = " ".join(["boil", "rice", "with", "salt", "and", "butter"] * 33)
    a = " ".join(words)
    b = " ".join(words[:900]) + " " + ending
    left, right = direct.encode([a, b], show_progress_bar=False)
    assert float(left @ right) == pytest.approx(1.0, abs=1e-5)
    result = encoder.encode_pairs([(a, b)])[0]
    assert result.cosine is not None
    assert result.least_match is not None
    assert result.cosine < 0.995
    assert result.least_match < 0.7


def test_symmetric(encoder: TextEncoder) -> None:
    long = " ".join(f"paragraph {i} is about topic {i % 7}." for i in range(120))
    for a, b in [*SHORT, (long, SHORT[0][0])]:
        forth, back = encoder.encode_pairs([(a, b), (b, a)])
        assert forth.cosine == pytest.approx(back.cosine, abs=1e-6)
        assert forth.least_match == pytest.approx(back.least_match, abs=1e-6)


def test_windows_against_the_library_called_directly(encoder: TextEncoder, direct: Any) -> None:
    """Words of one piece each, so that the windows are known: 200, 200 and 50 words against 200 and 100."""
    a, b = (
        [words[i * 7 % len(words)] for i in range(count)] for words, count in ((GARDEN, 450), (OFFICE, 300))
    )
    vectors = {}
    for name, words in (("a", a), ("b", b)):
        texts = [" ".join(words[start : start + 200]) for start in range(0, len(words), 200)]
        vectors[name] = direct.encode(texts, show_progress_bar=False, normalize_embeddings=True)
    means = [np.array([200, 200, 50]) @ vectors["a"], np.array([200, 100]) @ vectors["b"]]
    matches = vectors["a"] @ vectors["b"].T
    (result,) = encoder.encode_pairs([(" ".join(a), " ".join(b))])
    expected = means[0] @ means[1] / np.linalg.norm(means[0]) / np.linalg.norm(means[1])
    assert result.cosine == pytest.approx(expected, abs=LARGEST_ERROR)
    least = min(matches.max(axis=0).min(), matches.max(axis=1).min())
    assert result.least_match == pytest.approx(least, abs=LARGEST_ERROR)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_keeps_the_cosines(form: str, direct: Any) -> None:
    encoder = TextEncoder(forms=[form])
    results = encoder.encode_pairs(SHORT)
    assert encoder.form == form
    for (a, b), result in zip(SHORT, results, strict=True):
        left, right = direct.encode([a, b], show_progress_bar=False, normalize_embeddings=True)
        assert result.cosine == pytest.approx(
            float(left @ right), abs=1e-5 if form == "fp32" else LARGEST_ERROR
        )


def test_a_long_loop_is_scored_and_a_text_of_too_many_windows_is_not(encoder: TextEncoder) -> None:
    loop = "I am happy. " * (MAX_CHARACTERS // 12)
    numbers = " ".join(f"report {i} is late" for i in range(60 * MAX_WINDOWS))
    results = encoder.encode_pairs(
        [
            ("I am happy. " * 50, loop),
            ("short", numbers),
            ("short", "x" * (MAX_CHARACTERS + 1)),
            (numbers, numbers),
        ]
    )
    assert [result.unscored for result in results] == [None, "too_long", "too_long", None]
    assert results[0].cosine is not None
    assert 0.99 < results[0].cosine <= 1.0
    assert results[3].cosine == 1.0


def test_pieces_are_read_as_the_library_reads_the_text(encoder: TextEncoder, direct: Any) -> None:
    """Windows of many lengths in one call: each must come back in its own place, free of its padding."""
    encoder.encode_pairs(SHORT[:1])
    model = encoder._loaded
    assert model is not None
    texts = [" ".join((GARDEN * 10)[: 7 * count % 199 + 1]) for count in range(20)]
    texts += [text for pair in SHORT for text in pair]
    pieces = direct.tokenizer(texts, add_special_tokens=False)["input_ids"]
    windows = [Window(text, tuple(own)) for text, own in zip(texts, pieces, strict=True)]
    expected = direct.encode(texts, show_progress_bar=False, normalize_embeddings=True)
    for found in (model.embed(windows), model.embed([Window(text) for text in texts])):
        assert (found * expected).sum(axis=1) == pytest.approx(1.0, abs=LARGEST_ERROR)


def test_pieces_of_a_word_that_is_cut_are_not_handed_on(
    encoder: TextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder.encode_pairs(SHORT[:1])
    loaded = encoder._loaded
    assert loaded is not None
    seen: list[Window] = []

    def spy(windows: Any) -> Any:
        seen.extend(windows)
        return loaded.embed(windows)

    # 22 pieces at most: a word of 90 letters has more than a window holds.
    monkeypatch.setattr(encoder, "_loaded", dataclasses.replace(loaded, max_pieces=22, embed=spy))
    encoder.encode_pairs([("xqzjv" * 18, "a river in the garden")])
    known = {window.text: window.pieces for window in seen}
    assert len(known) > 2
    assert known.pop("a river in the garden") == (1037, 2314, 1999, 1996, 3871)
    assert set(known.values()) == {None}


def test_windows_that_texts_share_are_encoded_once(
    encoder: TextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder.encode_pairs(SHORT[:1])
    seen: list[str] = []
    loaded = encoder._loaded
    assert loaded is not None

    def spy(texts: Any) -> Any:
        seen.extend(texts)
        return loaded.embed(texts)

    monkeypatch.setattr(encoder, "_loaded", dataclasses.replace(loaded, embed=spy))
    start = " ".join(GARDEN * 10 + GARDEN[::-1] * 10)  # 400 pieces: two windows
    encoder.encode_pairs([(f"{start} ends here", f"{start} stops there")])
    assert len(seen) == 4  # two shared windows, two ends
    assert len(set(seen)) == 4


def test_what_is_unscored(encoder: TextEncoder) -> None:
    chinese = (
        "\u5df4\u9ece\u662f\u6cd5\u56fd\u7684\u9996\u90fd\u3002",
        "\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002",
    )
    results = encoder.encode_pairs([("", "x"), (" ", " "), chinese, ("word", "\x00\x01")])
    assert [result.unscored for result in results] == [
        "empty_text",
        "empty_text",
        "unknown_pieces",
        "unknown_pieces",
    ]
    assert all(result.cosine is None and result.least_match is None for result in results)


def test_identical_texts_score_one_without_a_model() -> None:
    # The model does not exist: loading it would raise.
    encoder = TextEncoder("no/such/model")
    assert encoder.encode_pairs([("\u5df4\u9ece", "\u5df4\u9ece")]) == [CosineResult(1.0, 1.0)]
    assert encoder.form is None


def test_each_distinct_text_is_encoded_once(encoder: TextEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder.encode_pairs(SHORT[:1])
    seen: list[str] = []
    real = encoder._encode_new

    def spy(texts: list[str]) -> Any:
        seen.extend(texts)
        return real(texts)

    monkeypatch.setattr(encoder, "_encode_new", spy)
    encoder.encode_pairs([("one thing", "another"), ("another", "one thing"), ("another", SHORT[0][0])])
    encoder.encode_pairs([("one thing", "a third")])
    assert sorted(seen) == ["a third", "another", "one thing"]


def test_the_cache_is_bounded(encoder: TextEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compare.metrics.embedding._CACHED_WINDOWS", 4)
    encoder.encode_pairs([(f"left {i}", f"right {i}") for i in range(10)])
    assert len(encoder._cache) <= 4
    assert encoder._cached_windows == sum(len(entry.weights) for entry in encoder._cache.values())


def test_several_threads_get_the_same_numbers(encoder: TextEncoder) -> None:
    expected = encoder.encode_pairs(SHORT)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: encoder.encode_pairs(SHORT), range(8)))
    for result in results:
        assert [r.cosine for r in result] == pytest.approx([r.cosine for r in expected], abs=1e-6)


def test_a_model_that_cannot_be_loaded_names_the_setting(tmp_path: Any) -> None:
    with pytest.raises(SettingsError, match=r"compare\.embedding_model = '.*' cannot be loaded: .+"):
        TextEncoder(str(tmp_path)).encode_pairs([("a", "b")])
    with pytest.raises(SettingsError, match="compare.embedding_model is empty"):
        TextEncoder("")


def test_importing_the_scores_imports_no_torch() -> None:
    code = "import sys, compare.score; print('torch' in sys.modules, 'sentence_transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
