"""One sentence-transformers model by torch on the CPU: in fp32 the judge of all others, and in bf16.

torch and sentence-transformers are imported when a model is loaded, not before; they take some 600 MiB.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from compare.metrics.embedding_model import (
    LARGEST_ERROR,
    PROBES,
    Embed,
    EmbeddingModel,
    Vectors,
    Window,
    cosines,
    model_folder,
    probe_error,
    unit,
)
from compare.metrics.pieces import PieceReader
from ingest.errors import SettingsError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_BATCH = 32
_log = logging.getLogger(__name__)


def load_by_torch(model: str, forms: Sequence[str]) -> EmbeddingModel | None:
    """Load a model in the first of `forms` ("bf16", "fp32") that keeps the probes' cosines; None: in none.

    Raises SettingsError if the model cannot be loaded.
    """
    loaded = sentence_transformer(model)
    exact = cosines(by_torch(loaded, PROBES))
    for form in forms:
        if form == "fp32":
            if form != forms[0]:
                _log.warning("embedding model %s: 32-bit weights are used, about 5 times slower", model)
                # Widening rounded weights again would keep their error.
                loaded = sentence_transformer(model)
            return _model(form, model, loaded, partial(by_torch, loaded))
        embed = _in_bf16(loaded)
        error = probe_error(embed, exact)
        if error < LARGEST_ERROR:
            _log.info("embedding model %s: %s, cosine error %.4f on the probes", model, form, error)
            return _model(form, model, loaded, embed)
        _log.warning("embedding model %s: %s changes a cosine by %.4f, not used", model, form, error)
    return None


def sentence_transformer(model: str) -> SentenceTransformer:
    """Load the library's own model with 32-bit weights. Raises SettingsError."""
    folder = model_folder(model)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if folder is not None:
        # Nothing on disk needs the hub, which is asked for updates otherwise.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging
    except ImportError as error:
        raise SettingsError(
            f"compare.embedding_model = {model!r} needs more packages ({error}): "
            "pip install 'gnomon[embed]', or set it to empty to leave embeddings out"
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


def piece_reader(model: str, loaded: SentenceTransformer) -> PieceReader:
    """Return what reads texts as the library does. Raises SettingsError."""
    try:
        return PieceReader.of_library(loaded.tokenizer)
    except AttributeError as error:
        raise SettingsError(
            f"compare.embedding_model = {model!r} cannot be used: its tokenizer does not give offsets"
        ) from error


def by_torch(model: SentenceTransformer, windows: Sequence[Window]) -> Vectors:
    """sentence-transformers reads the texts, sorts by length and pads within a batch. Unit vectors (n, d)."""
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


def _model(form: str, model: str, loaded: SentenceTransformer, embed: Embed) -> EmbeddingModel:
    reader = piece_reader(model, loaded)
    return EmbeddingModel(form, reader, loaded.max_seq_length, lambda windows: unit(embed(windows)))


def _in_bf16(model: SentenceTransformer) -> Embed:
    import torch

    model.to(torch.bfloat16)
    return partial(by_torch, model)
