"""Converted text encoders, kept in the user's cache folder so that only the first start needs torch.

An entry is a folder named by a hash of the model's files, of the packages that converted it and of `FORMAT`.
It is written under another name and renamed, and holds a digest of each file: what is half or damaged counts
as absent. Nothing here imports torch or OpenVINO.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
import platformdirs

from compare.metrics.embedding_model import model_folder
from compare.metrics.pieces import PieceSettings

FORMAT = 1
"""Raise it when the same model and packages must give other files."""

NETWORK = "network.xml"
TOKENIZER = "tokenizer.json"

_FACTS = "encoder.json"
_DIGESTS = "digests.json"
_FILES = (NETWORK, "network.bin", TOKENIZER)
_PACKAGES = ("openvino", "sentence-transformers", "tokenizers", "torch", "transformers")
_MODEL_FILES = ("modules.json", "config.json")
_DRAFT = ".part"
_ORGANIZATION = "sentence-transformers"
"""Whose models sentence-transformers finds by their names alone."""


class Converted(msgspec.Struct, frozen=True, tag=True):
    """What is known of a converted model beside its files."""

    pieces: PieceSettings
    max_pieces: int | None
    cosines: list[list[float]]
    """Of the probes, with 32-bit weights by torch."""


class Refused(msgspec.Struct, frozen=True, tag=True):
    """A model that OpenVINO does not take."""

    why: str


Entry = Converted | Refused


def cache_folder() -> Path:
    """Return the folder that holds the entries."""
    return Path(platformdirs.user_cache_dir("gnomon")) / "encoders"


def entry_name(model: str) -> str | None:
    """Return the name of a model's entry, None if its files are not on this machine.

    A model that the hub resolves is looked for where the hub keeps it here. Raises OSError if a file cannot
    be read.
    """
    folder = model_folder(model) or _hub_folder(model)
    # Without these it is no model, and may be a folder of any size.
    if folder is None or not any((folder / name).is_file() for name in _MODEL_FILES):
        return None
    hashed = hashlib.sha256(f"{FORMAT} {[_version(package) for package in _PACKAGES]}".encode())
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            hashed.update(f"\n{name} {_digest(path)}".encode())
    return hashed.hexdigest()[:32]


def read_entry(folder: Path) -> Entry | None:
    """Return what a folder holds, None if it is absent, half or damaged."""
    try:
        digests = msgspec.json.decode((folder / _DIGESTS).read_bytes(), type=dict[str, str])
        if any(_digest(folder / name) != digest for name, digest in digests.items()) or _FACTS not in digests:
            return None
        entry: Entry = msgspec.json.decode((folder / _FACTS).read_bytes(), type=Entry)
    except (OSError, msgspec.DecodeError):
        return None
    return entry if isinstance(entry, Refused) or digests.keys() >= set(_FILES) else None


def write_entry(root: Path, name: str, entry: Entry, write: Callable[[Path], None]) -> Path:
    """Write an entry whose own files `write` puts into the folder that it is given; return where it is.

    Raises OSError, and what `write` raises.
    """
    target = root / name
    draft = root / f".{name}.{secrets.token_hex(4)}{_DRAFT}"
    draft.mkdir(parents=True)
    try:
        write(draft)
        (draft / _FACTS).write_bytes(msgspec.json.encode(entry))
        digests = {path.name: _digest(path) for path in draft.iterdir()}
        (draft / _DIGESTS).write_bytes(msgspec.json.encode(digests))
        _rename(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """While inside, other processes wait here. Where a folder cannot be locked, they only do work twice."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        file = (root / ".lock").open("ab")
    except OSError:
        yield
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            yield
            return
        # Left by those who were killed: nobody else writes now.
        for draft in root.glob(f".*{_DRAFT}"):
            shutil.rmtree(draft, ignore_errors=True)
        yield


def _rename(draft: Path, target: Path) -> None:
    while True:
        try:
            os.rename(draft, target)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if read_entry(target) is not None:
            # Another process was faster.
            return
        # The damaged one's files may still be open elsewhere.
        aside = draft.with_name(f".{target.name}.{secrets.token_hex(4)}{_DRAFT}")
        with suppress(FileNotFoundError):
            os.rename(target, aside)
        shutil.rmtree(aside, ignore_errors=True)


def _hub_folder(model: str) -> Path | None:
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    for name in (model,) if "/" in model else (f"{_ORGANIZATION}/{model}", model):
        for file in _MODEL_FILES:
            try:
                found = try_to_load_from_cache(name, file)
            except ValueError:
                # No name that the hub would know.
                continue
            if isinstance(found, str):
                return Path(found).parent
    return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
